import { createRequire } from "node:module";
import {
  type Address,
  computeKeccakBy,
  type Hex,
  isBytes32,
  keccakBytes,
  toHex,
} from "../../protocol/hex.ts";
import { readEcdsaSignature } from "../../protocol/signed-payment.ts";
import { createBoundedMap } from "../../util/cache.ts";

/**
 * Recovers the uncompressed public key (65 bytes) that made a signature over a 32-byte digest.
 *
 * @param rs r and s, 64 bytes
 * @returns memory that the next recovery may overwrite
 * @throws Error when no key can have made it
 */
export type RecoverPublicKey = (rs: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array) => Uint8Array;

/** The implementation that recovers public keys in this process. */
export type Recovery = {
  /** True for libsecp256k1, which takes 0.07 ms; false for JavaScript, which takes about 3 ms. */
  isNative: boolean;
  recoverPublicKey: RecoverPublicKey;
};

const require = createRequire(import.meta.url);

/**
 * Loads libsecp256k1 if the package has a binding for this platform (Linux and Windows on x64, macOS on arm64) or
 * could build one; otherwise `@noble/curves`. The binding is loaded directly, because the package's own fallback,
 * `elliptic`, is as slow and no longer maintained.
 */
export function loadRecovery(load = loadNative): Recovery {
  try {
    return { isNative: true, recoverPublicKey: load() };
  } catch {
    return { isNative: false, recoverPublicKey: loadNoble() };
  }
}

/** @throws Error when there is no binding for the platform */
function loadNative(): RecoverPublicKey {
  const native: Pick<typeof import("secp256k1"), "ecdsaRecover"> = require("secp256k1/bindings.js");
  // Reused, because memory above 64 bytes is allocated outside the heap.
  const publicKey = new Uint8Array(65);
  return (rs, recoveryId, digest) => native.ecdsaRecover(rs, recoveryId, digest, false, publicKey);
}

function loadNoble(): RecoverPublicKey {
  const { secp256k1 }: typeof import("@noble/curves/secp256k1") = require("@noble/curves/secp256k1");
  return (rs, recoveryId, digest) =>
    secp256k1.Signature.fromCompact(rs).addRecoveryBit(recoveryId).recoverPublicKey(digest).toRawBytes(false);
}

let recovery: Recovery | undefined;

/** Loaded with the first signature, because it takes 5 ms and most commands recover none. */
function loadedRecovery(): Recovery {
  recovery ??= loadRecovery();
  return recovery;
}

/**
 * Returns true if signatures are recovered by libsecp256k1. Without it, each verify takes about 3 ms of CPU instead of
 * 0.1; `serve` and `doctor` report it.
 */
export function isRecoveryNative(): boolean {
  return loadedRecovery().isNative;
}

/**
 * Returns the address, in lower case, whose key made a plain ECDSA signature over a 32-byte digest. Returns undefined if
 * the token could not accept the signature: see {@link readEcdsaSignature}, or r or s zero or out of range. Never throws.
 *
 * Pass a signature through {@link normaliseSignature} before you send it to the token.
 */
export function recoverSigner(digest: Hex, signature: Hex): Address | undefined {
  const ecdsa = readEcdsaSignature(signature);
  if (ecdsa === undefined || !isBytes32(digest)) return undefined;
  try {
    const publicKey = loadedRecovery().recoverPublicKey(
      Buffer.from(ecdsa.rs, "hex"),
      ecdsa.recoveryId,
      Buffer.from(digest.slice(2), "hex"),
    );
    // Without the first byte, the prefix of uncompressed keys.
    return toHex(keccakBytes(publicKey.subarray(1)).subarray(12));
  } catch {
    // r or s is out of range, or r is not on the curve: no key made this signature.
    return undefined;
  }
}

/**
 * Caches the results of `recover`, for signatures that are checked many times. Keeps the newest `most` signers.
 * Signatures without a signer are not cached: they may be long, and are rejected quickly.
 */
export function rememberSigners(recover: typeof recoverSigner, most: number): typeof recoverSigner {
  const known = createBoundedMap<string, Address>(most);
  return (digest, signature) => {
    const key = `${digest}${signature}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const signer = recover(digest, signature);
    if (signer !== undefined) known.set(key, signer);
    return signer;
  };
}

/**
 * Returns the same signature with v 27 or 28, as USDC requires; anything but a plain signature is unchanged.
 *
 * Only for signatures that {@link recoverSigner} recovered to the payer. For a contract wallet the last byte may have
 * another meaning: a Safe reads 0 and 1 as types of signature.
 */
export function normaliseSignature(signature: Hex): Hex {
  const ecdsa = readEcdsaSignature(signature);
  if (ecdsa === undefined) return signature;
  return `0x${ecdsa.rs}${ecdsa.recoveryId === 0 ? "1b" : "1c"}`;
}

/**
 * Switches keccak256 to WebAssembly, which takes a tenth of the time; a settle hashes about 2 KB. Without WebAssembly
 * nothing changes. Loading takes a few milliseconds, so it happens after the service has started.
 */
export async function loadFastKeccak(): Promise<void> {
  try {
    const { createKeccak } = await import("hash-wasm");
    const keccak = await createKeccak(256);
    const hash = (bytes: Uint8Array) => keccak.init().update(bytes).digest("binary");
    // The hashes must be equal: everything that is signed and compared depends on them.
    const probes = [0, 1, 135, 136, 137, 300].map((length) => new Uint8Array(length).fill(length));
    const agree = probes.every((bytes) => sameBytes(hash(bytes), keccakBytes(bytes)));
    if (agree) computeKeccakBy(hash);
  } catch {
    // No WebAssembly, which some policies forbid.
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
