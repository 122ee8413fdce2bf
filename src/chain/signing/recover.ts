import { type Address, type Hex, isBytes32, keccakBytes, toHex } from "../../protocol/hex.ts";
import { readEcdsaSignature } from "../../protocol/signature.ts";
import { loadRecovery } from "./recover-public-key.ts";

const recovery = loadRecovery();

/**
 * Whether signatures are recovered by libsecp256k1. Where it is missing, each verify takes some 3 ms of CPU instead of
 * 0.1: `serve` and `doctor` say so.
 */
export const isRecoveryNative = recovery.isNative;

/**
 * The address whose key made a plain ECDSA signature over a 32-byte digest, in lower case; undefined when the
 * signature is none that the token could accept: see {@link readEcdsaSignature}, or r or s zero or out of range. Never
 * throws.
 *
 * What the token itself gets must go through {@link normaliseSignature} first.
 */
export function recoverSigner(digest: Hex, signature: Hex): Address | undefined {
  const ecdsa = readEcdsaSignature(signature);
  if (ecdsa === undefined || !isBytes32(digest)) return undefined;
  try {
    const publicKey = recovery.recoverPublicKey(
      Buffer.from(ecdsa.rs, "hex"),
      ecdsa.recoveryId,
      Buffer.from(digest.slice(2), "hex"),
    );
    // Without the first byte, which says that the key is not compressed.
    return toHex(keccakBytes(publicKey.subarray(1)).subarray(12));
  } catch {
    // r or s out of range, or r of no point on the curve: the signature of no key.
    return undefined;
  }
}

/**
 * The same signature with v 27 or 28, as USDC wants it; what is no plain signature stays as it is.
 *
 * Only for signatures that {@link recoverSigner} recovered to the payer. To a contract wallet the last byte may mean
 * something else: a Safe reads 0 and 1 as kinds of signature.
 */
export function normaliseSignature(signature: Hex): Hex {
  const ecdsa = readEcdsaSignature(signature);
  if (ecdsa === undefined) return signature;
  return `0x${ecdsa.rs}${ecdsa.recoveryId === 0 ? "1b" : "1c"}`;
}
