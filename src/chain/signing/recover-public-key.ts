import { createRequire } from "node:module";

/**
 * The uncompressed public key (65 bytes) whose key made a signature over a 32-byte digest.
 *
 * @param rs r and s, 64 bytes
 * @returns memory that the next recovery may overwrite
 * @throws Error when no key can have made it
 */
export type RecoverPublicKey = (rs: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array) => Uint8Array;

/** How public keys are recovered in this process. */
export type Recovery = {
  /** Whether by libsecp256k1, which takes 0.07 ms, or in JavaScript, which takes some 3 ms. */
  isNative: boolean;
  recoverPublicKey: RecoverPublicKey;
};

const require = createRequire(import.meta.url);

/**
 * libsecp256k1 where the package brings it for this platform (Linux and Windows on x64, macOS on arm64), or could build
 * it; otherwise `@noble/curves`. The package's own substitute is `elliptic`, which is as slow and no longer maintained:
 * so its binding is loaded by itself.
 */
export function loadRecovery(load = loadNative): Recovery {
  try {
    return { isNative: true, recoverPublicKey: load() };
  } catch {
    return { isNative: false, recoverPublicKey: loadNoble() };
  }
}

/** @throws Error where there is no binding for the platform */
function loadNative(): RecoverPublicKey {
  const native: Pick<typeof import("secp256k1"), "ecdsaRecover"> = require("secp256k1/bindings.js");
  // One for all: memory of more than 64 bytes is outside of the heap, and has to be found and given back.
  const publicKey = new Uint8Array(65);
  return (rs, recoveryId, digest) => native.ecdsaRecover(rs, recoveryId, digest, false, publicKey);
}

function loadNoble(): RecoverPublicKey {
  const { secp256k1 }: typeof import("@noble/curves/secp256k1") = require("@noble/curves/secp256k1");
  return (rs, recoveryId, digest) =>
    secp256k1.Signature.fromCompact(rs).addRecoveryBit(recoveryId).recoverPublicKey(digest).toRawBytes(false);
}
