import { z } from "zod";
import { findSlip } from "../util/text.ts";
import type { Address, Hex } from "./hex.ts";
import { addressFault, faults, forms, maxSignatureBytes, parseUint256 } from "./wire-values.ts";

/** A `uint256` as a decimal string without sign, space or leading zero. Read as a bigint. */
export const uint256String = z
  .string(faults.digits)
  .regex(forms.decimal, { error: faults.decimal, abort: true })
  .refine((text) => parseUint256(text) !== null, faults.tooLarge)
  .transform((text) => BigInt(text))
  .meta({
    description: "A uint256 as decimal digits, without sign, space or leading zero",
    example: "10000",
  });

/** A 20-byte address, in any casing. */
export const address = z
  .string(faults.text)
  .regex(forms.address, { error: ({ input }) => addressFault(String(input)) })
  .transform((text) => text as Address)
  .meta({ description: "An address", example: "0x857b06519E91e3A54538791bDbb0E22373e36b66" });

export const bytes32 = z
  .string(faults.text)
  .regex(forms.bytes32, faults.bytes32)
  .transform((text) => text as Hex)
  .meta({ description: "32 bytes as hexadecimal" });

/** A signature as hex: a plain account's, or anything that a wallet accepts (EIP-1271). */
export const signature = z
  .string(faults.text)
  .max(2 + 2 * maxSignatureBytes, faults.tooLong)
  .regex(forms.bytes, faults.bytes)
  .transform((text) => text as Hex)
  .meta({ description: `A signature as hexadecimal, of at most ${maxSignatureBytes} bytes` });

/** An object without other members than these. The error for an unknown member suggests the one that was probably meant. */
export function strictMembers<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      return issue.keys.map((key: string) => describeUnknown(key, known)).join("; ");
    },
  });
}

function describeUnknown(key: string, known: readonly string[]): string {
  const meant = findSlip(key, known, key.length > 5 ? 3 : 2);
  const all = known.length === 0 ? "it takes nothing" : `there is ${known.join(", ")}`;
  const hint = meant === undefined ? all : `did you mean "${meant}"?`;
  return `there is no ${JSON.stringify(key.slice(0, 40))} here; ${hint}`;
}
