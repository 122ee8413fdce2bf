import { computeKeccakBy, keccakBytes } from "./hex.ts";

/**
 * Computes keccak256 by WebAssembly from now on, which takes a tenth of the time: a settle hashes some 2 KB. Without
 * WebAssembly nothing changes. Loading takes a few milliseconds, so it is done after the service has started.
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
    // No WebAssembly, as under some policies.
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
