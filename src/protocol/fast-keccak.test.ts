import { keccak_256 } from "@noble/hashes/sha3";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { loadFastKeccak } from "./fast-keccak.ts";
import { computeKeccakBy, keccak256, keccak256Text, keccakBytes, toHex } from "./hex.ts";

afterEach(() => computeKeccakBy(keccak_256));

test("the fast hash is used, and equals the other for any bytes", async () => {
  await loadFastKeccak();
  const first = keccakBytes(new Uint8Array(3));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
      expect(keccakBytes(bytes)).toEqual(keccak_256(bytes));
      expect(keccak256(toHex(bytes))).toBe(toHex(keccak_256(bytes)));
    }),
  );
  expect(first).toEqual(keccak_256(new Uint8Array(3)));
  expect(keccakBytes).not.toBe(keccak_256);
  expect(keccak256("0x")).toBe("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
  expect(keccak256Text("transfer(address,uint256)").slice(0, 10)).toBe("0xa9059cbb");
});
