import { createHash } from "node:crypto";
import fc from "fast-check";
import native from "secp256k1";
import { expect, test } from "vitest";
import { publicKeyOf, signDigest } from "./secp256k1.ts";

const one = Uint8Array.from(Buffer.from(`${"00".repeat(31)}01`, "hex"));

test.each([
  [
    "Satoshi Nakamoto",
    "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d82442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5",
  ],
  [
    "All those moments will be lost in time, like tears in rain. Time to die...",
    "8600dbd41e348fe5c9465ab92d23e3db8b98b873beecd930736488696438cb6b547fe64427496db33bf66019dacbf0039c04199abb0122918601db38a72cfc21",
  ],
])("the published signature of %j (RFC 6979, low s)", (text, signature) => {
  const { rs } = signDigest(createHash("sha256").update(text).digest(), one);
  expect(Buffer.from(rs).toString("hex")).toBe(signature);
});

test("the same signatures and public keys as libsecp256k1's, for any key and digest", () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(bytes, bytes.filter(native.privateKeyVerify), (digest, key) => {
      const { signature, recid } = native.ecdsaSign(digest, key);
      const { rs, recoveryId } = signDigest(digest, key);
      expect([...rs, recoveryId]).toEqual([...signature, recid]);
      expect([...publicKeyOf(key)]).toEqual([...native.publicKeyCreate(key, false)]);
    }),
    { numRuns: 100 },
  );
});

test.each([
  ["zero", "00".repeat(32)],
  ["the order of the curve", "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"],
  ["too short", "5a".repeat(31)],
  ["too long", "5a".repeat(33)],
  ["empty", ""],
])("a key that is none (%s) signs nothing", (_, hex) => {
  const key = Uint8Array.from(Buffer.from(hex, "hex"));
  expect(() => signDigest(one, key)).toThrow();
  expect(() => publicKeyOf(key)).toThrow();
});
