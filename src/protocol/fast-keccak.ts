import { computeKeccakBy, keccakBytes } from "./hex.ts";

/**
 * Has keccak256 computed by WebAssembly, which takes a tenth of the time: a settle hashes some 2 KB. Where that is not to
 * be had, everything goes on as before. Takes a few milliseconds, so that it is done once a service runs.
 */
export async function loadFastKeccak(): Promise<void> {
  try {
    const { createKeccak } = await import("hash-wasm");
    const keccak = await createKeccak(256);
    const hash = (bytes: Uint8Array) => keccak.init().update(bytes).digest("binary");
    // Never another hash than before: everything that is signed and compared depends on it.
    const probes = [0, 1, 135, 136, 137, 300].map((length) => new Uint8Array(length).fill(length));
    const agree = probes.every((bytes) => sameBytes(hash(bytes), keccakBytes(bytes)));
    if (agree) computeKeccakBy(hash);
  } catch {
    // Without WebAssembly, as under some policies of a system.
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
