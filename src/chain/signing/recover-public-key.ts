import { createRequire } from "node:module";

/**
 * The uncompressed public key (65 bytes) whose key made a signature over a 32-byte digest.
 *
 * @param rs r and s, 64 bytes
 * @returns memory that the next recovery may overwrite
 * @throws Error when no key can have made it
 */
export type RecoverPublicKey = (rs: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array) => Uint8Array;

/**
 * Signs a 32-byte digest (RFC 6979, low s).
 *
 * @param key 32 bytes
 * @returns r and s, 64 bytes, and the parity of the point that r is of
 */
export type SignDigest = (digest: Uint8Array, key: Uint8Array) => { rs: Uint8Array; recoveryId: 0 | 1 };

/**
 * The uncompressed public key (65 bytes) of a private key.
 *
 * @throws Error when the key is not 32 bytes, zero, or not below the order of the curve
 */
export type PublicKeyOf = (key: Uint8Array) => Uint8Array;

/** How public keys are recovered, and digests signed, in this process. */
export type Recovery = {
  /** Whether by libsecp256k1, which takes 0.07 ms, or in JavaScript, which takes some 3 ms. */
  isNative: boolean;
  recoverPublicKey: RecoverPublicKey;
  signDigest: SignDigest;
  publicKeyOf: PublicKeyOf;
};

const require = createRequire(import.meta.url);

/**
 * libsecp256k1 where the package brings it for this platform (Linux and Windows on x64, macOS on arm64), or could build
 * it; otherwise `@noble/curves`. The package's own substitute is `elliptic`, which is as slow and no longer maintained:
 * so its binding is loaded by itself.
 */
export function loadRecovery(load = loadNative): Recovery {
  try {
    return { isNative: true, ...load() };
  } catch {
    return { isNative: false, ...loadNoble() };
  }
}

/** @throws Error where there is no binding for the platform */
function loadNative(): Omit<Recovery, "isNative"> {
  const native: Pick<
    typeof import("secp256k1"),
    "ecdsaRecover" | "ecdsaSign" | "publicKeyCreate"
  > = require("secp256k1/bindings.js");
  // One for all: memory of more than 64 bytes is outside of the heap, and has to be found and given back.
  const publicKey = new Uint8Array(65);
  return {
    recoverPublicKey: (rs, recoveryId, digest) =>
      native.ecdsaRecover(rs, recoveryId, digest, false, publicKey),
    signDigest(digest, key) {
      const { signature, recid } = native.ecdsaSign(digest, key);
      return { rs: signature, recoveryId: parity(recid) };
    },
    publicKeyOf: (key) => native.publicKeyCreate(key, false),
  };
}

function loadNoble(): Omit<Recovery, "isNative"> {
  const { secp256k1 }: typeof import("@noble/curves/secp256k1") = require("@noble/curves/secp256k1");
  return {
    recoverPublicKey: (rs, recoveryId, digest) =>
      secp256k1.Signature.fromCompact(rs)
        .addRecoveryBit(recoveryId)
        .recoverPublicKey(digest)
        .toRawBytes(false),
    signDigest(digest, key) {
      const signature = secp256k1.sign(digest, key, { lowS: true });
      return { rs: signature.toCompactRawBytes(), recoveryId: parity(signature.recovery) };
    },
    publicKeyOf: (key) => secp256k1.getPublicKey(key, false),
  };
}

/** 2 and 3 would be of an r above the order of the curve: once in 2^127 signatures, and none that Ethereum takes. */
function parity(recoveryId: number): 0 | 1 {
  if (recoveryId !== 0 && recoveryId !== 1) throw new RangeError("a signature that no transaction can carry");
  return recoveryId;
}
