import fc from "fast-check";
import { getAddress } from "viem";
import { expect, test } from "vitest";
import { checksumAddress, readAddress, toBytes, toHex } from "./hex.ts";

test.each([0, 1, 32, 256, 1_024, 1_025, 70_000])("%d bytes become hex and back", (length) => {
  const bytes = Uint8Array.from({ length }, (_, index) => index);
  expect(toHex(bytes)).toBe(`0x${Buffer.from(bytes).toString("hex")}`);
  expect(toBytes(toHex(bytes))).toEqual(bytes);
});

test("a part of a larger array becomes the hex of the part", () => {
  expect(toHex(Uint8Array.of(1, 9, 10, 11, 2).subarray(1, 4))).toBe("0x090a0b");
});

const someAddress = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

/** Random addresses in lower case. */
const addresses = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}` as const);

test("an address gets the checksum that EIP-55 gives it", () => {
  fc.assert(fc.property(addresses, (address) => checksumAddress(address) === getAddress(address)));
});

test("an address is read in lower case, in upper case, and with its checksum", () => {
  for (const text of [someAddress, someAddress.toLowerCase(), `0x${someAddress.slice(2).toUpperCase()}`]) {
    expect(readAddress(text)).toEqual({ address: someAddress });
  }
});

test.each([
  ["", "is not an address: 0x and 40 hexadecimal digits"],
  [someAddress.slice(2), "is not an address: 0x and 40 hexadecimal digits"],
  [`${someAddress}0`, "is not an address: 0x and 40 hexadecimal digits"],
  [` ${someAddress}`, "is not an address: 0x and 40 hexadecimal digits"],
  [someAddress.replace("E91e", "E91E"), "has a wrong checksum (EIP-55): a digit may be mistyped"],
  [someAddress.replace(/66$/, "67"), "has a wrong checksum (EIP-55): a digit may be mistyped"],
  [`0x${"0".repeat(40)}`, "is the zero address"],
])("%j is refused, with what is wrong with it", (text, problem) => {
  expect(readAddress(text)).toEqual({ problem });
});
