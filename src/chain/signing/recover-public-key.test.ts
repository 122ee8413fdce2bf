import fc from "fast-check";
import { expect, test } from "vitest";
import { loadRecovery, type RecoverPublicKey } from "./recover-public-key.ts";

const native = loadRecovery();
const substitute = loadRecovery(() => {
  throw new Error("No native build was found for platform=linux arch=arm64");
});

/** What comes of a recovery: the key, or nothing. */
function outcome(recover: RecoverPublicKey, rs: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array): string {
  try {
    return Buffer.from(recover(rs, recoveryId, digest)).toString("hex");
  } catch {
    return "no key";
  }
}

test("libsecp256k1 is there, and where it is not, that is known", () => {
  expect([native.isNative, substitute.isNative]).toEqual([true, false]);
});

test("both ways of recovering agree about any signature", () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  const edges = fc.constantFrom(
    "00".repeat(32),
    "ff".repeat(32),
    `${"00".repeat(31)}01`,
    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
    "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0",
  );
  const half = fc.oneof(
    { weight: 4, arbitrary: bytes(32) },
    { weight: 1, arbitrary: edges.map((hex) => Uint8Array.from(Buffer.from(hex, "hex"))) },
  );
  let keys = 0;
  fc.assert(
    fc.property(half, half, fc.constantFrom<0 | 1>(0, 1), bytes(32), (r, s, recoveryId, digest) => {
      const rs = Uint8Array.from([...r, ...s]);
      const key = outcome(native.recoverPublicKey, rs, recoveryId, digest);
      if (key !== "no key") keys++;
      expect(outcome(substitute.recoverPublicKey, rs, recoveryId, digest)).toBe(key);
    }),
    { numRuns: 200 },
  );
  expect(keys).toBeGreaterThan(20);
});
