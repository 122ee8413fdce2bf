import { expect, test } from "vitest";
import type { Hex } from "../../../protocol/hex.ts";
import { describePermit2Revert, permit2ErrorOf } from "./permit2-calls.ts";

/* The selectors are those of the contracts that stand on public chains. */

const errorOf = (data: Hex) => permit2ErrorOf({ kind: "unknown", data });
const word = "1".padStart(64, "0");

test.each([
  ["0x050cda49", "Permit2612AmountMismatch()"],
  ["0x49e27cff", "InvalidOwner()"],
  ["0xac6b05f5", "InvalidDestination()"],
  ["0xa65539fa", "PaymentTooEarly()"],
  ["0x2c5211c6", "InvalidAmount()"],
  ["0x59106c89", "InvalidPermit2Address()"],
  ["0x3ee5aeb5", "ReentrancyGuardReentrantCall()"],
  ["0xfe64b4c7", "AmountExceedsPermitted()"],
  ["0x0f6fae87", "UnauthorizedFacilitator()"],
  ["0x756688fe", "InvalidNonce()"],
  ["0x815e1d64", "InvalidSigner()"],
  ["0x8baa579f", "InvalidSignature()"],
  ["0x4be6321b", "InvalidSignatureLength()"],
  ["0xb0669cbc", "InvalidContractSignature()"],
] as const)("%s is %s, with nothing behind it", (selector, error) => {
  expect(errorOf(selector)).toBe(error);
  expect(errorOf(`${selector}${word}`)).toBeUndefined();
  expect(describePermit2Revert(selector)).toBe(error.slice(0, -2));
});

test("Permit2 and the proxies each have an InvalidAmount, told apart by what is behind it", () => {
  const ofPermit2 = `0x3728b83d${word}` as const;
  expect([errorOf("0x2c5211c6"), errorOf(ofPermit2)]).toEqual(["InvalidAmount()", "InvalidAmount(uint256)"]);
  expect(errorOf("0x3728b83d")).toBeUndefined();
  expect(describePermit2Revert(ofPermit2)).toBe("InvalidAmount 1");
});

test("an expired permit says when, and what is none of these says nothing of them", () => {
  expect(describePermit2Revert(`0xcd21db4f${word}`)).toBe("SignatureExpired 1");
  expect(errorOf("0xdeadbeef")).toBeUndefined();
  expect(errorOf("0x")).toBeUndefined();
  expect(permit2ErrorOf({ kind: "error", message: "TRANSFER_FROM_FAILED" })).toBeUndefined();
});
