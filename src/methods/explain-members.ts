import { parseUint256 } from "../protocol/wire-values.ts";

/** Reads a uint256. A number where a text of digits belongs is read too: that mistake is a usual one. */
export function readAnyNumber(value: unknown): bigint | undefined {
  const text = Number.isSafeInteger(value) ? `${value}` : value;
  return typeof text === "string" ? (parseUint256(text) ?? undefined) : undefined;
}
