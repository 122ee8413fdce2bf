import { afterEach, expect, test, vi } from "vitest";
import { type Hex, toBytes, toHex } from "./hex.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each([
  ["in Node", Buffer],
  ["in a browser, without Buffer", undefined],
])("bytes become hex and back, a part of a larger array too, %s", (_where, buffer) => {
  vi.stubGlobal("Buffer", buffer);
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  expect(toHex(all)).toMatch(/^0x000102.*fdfeff$/);
  expect(toBytes(toHex(all))).toEqual(all);
  expect(toHex(all.subarray(9, 12))).toBe("0x090a0b" satisfies Hex);
  expect(toHex(new Uint8Array())).toBe("0x");
});
