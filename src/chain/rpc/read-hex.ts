import type { Hex } from "../../protocol/hex.ts";

/** Reads values that a node gives as hex. Each is undefined when the value is anything else. */

const quantityPattern = /^0x[0-9a-fA-F]{1,64}$/;
const wholeBytes = /^0x(?:[0-9a-fA-F]{2})*$/;

/** A number of up to 256 bits, leading zeros allowed. */
export function readQuantity(value: unknown): bigint | undefined {
  return typeof value === "string" && quantityPattern.test(value) ? BigInt(value) : undefined;
}

/** Writes a number as JSON-RPC wants it: hexadecimal without leading zeros. */
export function quantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`;
}

/** Any number of whole bytes. */
export function isBytes(value: unknown): value is Hex {
  return typeof value === "string" && wholeBytes.test(value);
}

/** Exactly 32 bytes. */
export function isWord(value: unknown): value is Hex {
  return isBytes(value) && value.length === 66;
}

/** Exactly 20 bytes. */
export function isAddress(value: unknown): value is Hex {
  return isBytes(value) && value.length === 42;
}

/** The word at an index of ABI-encoded data, as 64 digits without 0x; undefined beyond the end. */
export function wordAt(data: Hex, index: number): string | undefined {
  const start = 2 + index * 64;
  return data.length >= start + 64 ? data.slice(start, start + 64) : undefined;
}
