import { z } from "zod";
import type { Address, Hex } from "./hex.ts";

/** The largest value of a Solidity `uint256`. */
export const maxUint256 = 2n ** 256n - 1n;

const decimal = /^(0|[1-9][0-9]{0,77})$/;

/** Reads a decimal string as a `uint256`; null when it is not one (sign, space, leading zero, too large). */
export function parseUint256(text: string): bigint | null {
  if (!decimal.test(text)) return null;
  const value = BigInt(text);
  return value <= maxUint256 ? value : null;
}

/** A `uint256` written as a decimal string without sign, space or leading zero. Read as a bigint. */
export const uint256String = z
  .string("must be a string of decimal digits")
  .regex(
    decimal,
    'must be decimal digits without sign, point, space or leading zero; amounts are in the token\'s smallest unit: 0.01 USDC is "10000"',
  )
  .refine((text) => parseUint256(text) !== null, "must be below 2^256")
  .transform((text) => BigInt(text))
  .meta({
    description: "A uint256 as decimal digits, without sign, space or leading zero",
    example: "10000",
  });

/** A 20-byte address, in any casing. */
export const address = z
  .string("must be a string")
  .regex(/^0x[0-9a-fA-F]{40}$/, "must be an address: 0x and 40 hexadecimal digits")
  .transform((text) => text as Address)
  .meta({ description: "An address", example: "0x857b06519E91e3A54538791bDbb0E22373e36b66" });

/** 32 bytes as hex. */
export const bytes32 = z
  .string("must be a string")
  .regex(/^0x[0-9a-fA-F]{64}$/, "must be 32 bytes: 0x and 64 hexadecimal digits")
  .transform((text) => text as Hex)
  .meta({ description: "32 bytes as hexadecimal" });

/**
 * The longest signature that is read, in bytes. A plain one has 65; those of wallets (passkeys, many owners) stay below
 * 2 KiB. Longer ones would make transactions that nodes refuse (128 KiB, with up to 50 payments in one).
 */
export const maxSignatureBytes = 4_096;

/** A signature as hex: of a plain account, or whatever a wallet takes (EIP-1271). */
export const signature = z
  .string("must be a string")
  .max(2 + 2 * maxSignatureBytes, `must have at most ${maxSignatureBytes} bytes`)
  .regex(/^0x([0-9a-fA-F]{2})*$/, "must be whole bytes of hexadecimal after 0x")
  .transform((text) => text as Hex)
  .meta({ description: `A signature as hexadecimal, of at most ${maxSignatureBytes} bytes` });
