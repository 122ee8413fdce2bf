import type { Hex } from "../protocol/hex.ts";
import { readEcdsaSignature } from "../protocol/signed-payment.ts";

/**
 * Describes a signature that no account without code can have made, as the start of a message: the wrong length, or ""
 * if the length is right. Returns undefined for a well-formed signature.
 */
export function describeMalformed(signature: Hex): string | undefined {
  if (readEcdsaSignature(signature) !== undefined) return undefined;
  const bytes = (signature.length - 2) / 2;
  return bytes === 65
    ? ""
    : `It has ${bytes} ${bytes === 1 ? "byte" : "bytes"}, and that of an account without code has 65. `;
}
