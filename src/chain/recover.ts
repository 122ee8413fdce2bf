import { keccak_256 } from "@noble/hashes/sha3";
import secp256k1 from "secp256k1";
import { type Address, type Hex, toHex } from "../protocol/hex.ts";

/** r, s and v, one after the other, as USDC takes the signature of a plain account. */
const ecdsaSignature = /^0x[0-9a-fA-F]{130}$/;

const word = /^0x[0-9a-fA-F]{64}$/;

/** Half the order of secp256k1. USDC refuses an s above it, since (r, n - s) would sign the same. */
const highestS = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/** v as it should be, and as some wallets give it. */
const recoveryIds: ReadonlyMap<string, 0 | 1> = new Map([
  ["1b", 0],
  ["1c", 1],
  ["00", 0],
  ["01", 1],
]);

/**
 * The address whose key made a plain ECDSA signature over a 32-byte digest, in lower case; undefined when the
 * signature is none that the token could accept: not 65 bytes, s in the upper half, v other than 27, 28, 0 or 1, r
 * or s zero or out of range. Signatures of other lengths are for wallets (EIP-1271). Never throws.
 *
 * What the token itself gets must go through {@link normaliseSignature} first.
 */
export function recoverSigner(digest: Hex, signature: Hex): Address | undefined {
  if (!word.test(digest) || !ecdsaSignature.test(signature)) return undefined;
  const recoveryId = recoveryIds.get(signature.slice(130).toLowerCase());
  if (recoveryId === undefined || signature.slice(66, 130).toLowerCase() > highestS) return undefined;
  try {
    const publicKey = secp256k1.ecdsaRecover(
      Buffer.from(signature.slice(2, 130), "hex"),
      recoveryId,
      Buffer.from(digest.slice(2), "hex"),
      false,
    );
    // Without the first byte, which says that the key is not compressed.
    return toHex(keccak_256(publicKey.subarray(1)).subarray(12));
  } catch {
    // r or s out of range, or r of no point on the curve: nobody's signature.
    return undefined;
  }
}

/**
 * The same signature with v 27 or 28, as USDC wants it; anything but 65 bytes with v 0 or 1 stays as it is.
 *
 * Only for signatures that {@link recoverSigner} recovered to the payer. To a contract wallet the last byte may mean
 * something else: a Safe reads 0 and 1 as kinds of signature.
 */
export function normaliseSignature(signature: Hex): Hex {
  if (!ecdsaSignature.test(signature)) return signature;
  const recoveryId = recoveryIds.get(signature.slice(130).toLowerCase());
  if (recoveryId === undefined) return signature;
  return `0x${signature.slice(2, 130)}${recoveryId === 0 ? "1b" : "1c"}`;
}
