import { expect, test } from "vitest";
import { toBytes, toHex } from "./hex.ts";

test.each([0, 1, 32, 256, 1_024, 1_025, 70_000])("%d bytes become hex and back", (length) => {
  const bytes = Uint8Array.from({ length }, (_, index) => index);
  expect(toHex(bytes)).toBe(`0x${Buffer.from(bytes).toString("hex")}`);
  expect(toBytes(toHex(bytes))).toEqual(bytes);
});

test("a part of a larger array becomes the hex of the part", () => {
  expect(toHex(Uint8Array.of(1, 9, 10, 11, 2).subarray(1, 4))).toBe("0x090a0b");
});
