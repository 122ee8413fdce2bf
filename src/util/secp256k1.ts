import { secp256k1 } from "@noble/curves/secp256k1";

/*
 * Signs in JavaScript, with the library that viem uses. The native code of the package `secp256k1`, from 2019, would
 * take a tenth of the time, but must not see a private key: it is only used to recover signers.
 */
// A smaller table of the base point costs a process that signs 12 ms instead of 32, and each signature 0.1 ms more.
secp256k1.ProjectivePoint.BASE._setWindowSize(5);

/**
 * Signs a 32-byte digest (RFC 6979, low s).
 *
 * @param key 32 bytes
 * @returns r and s (64 bytes), and the parity of the point behind r
 * @throws Error when the key is not 32 bytes, zero, or not below the order of the curve
 */
export function signDigest(digest: Uint8Array, key: Uint8Array): { rs: Uint8Array; recoveryId: 0 | 1 } {
  const signature = secp256k1.sign(digest, key, { lowS: true });
  const { recovery } = signature;
  // 2 and 3 would mean that r exceeded the order of the curve: once in 2^127 signatures, and rejected by Ethereum.
  if (recovery !== 0 && recovery !== 1) throw new RangeError("a signature that no transaction can carry");
  return { rs: signature.toCompactRawBytes(), recoveryId: recovery };
}

/**
 * The uncompressed public key (65 bytes) of a private key.
 *
 * @throws Error when the key is not 32 bytes, zero, or not below the order of the curve
 */
export function publicKeyOf(key: Uint8Array): Uint8Array {
  return secp256k1.getPublicKey(key, false);
}
