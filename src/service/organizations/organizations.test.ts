import { describe, expect, test } from "vitest";
import { belowMinimum, type Limits, refusedForCode } from "./organizations.ts";

const limitsOf = (changes: Partial<Limits>): Limits => ({
  minimumAmount: null,
  dailyGasBudget: null,
  refusePayersWithCode: false,
  ...changes,
});

describe("the least amount", () => {
  test.each<[string, Limits | undefined, bigint, boolean]>([
    ["no limits at all", undefined, 0n, false],
    ["no minimum", limitsOf({ dailyGasBudget: 0n }), 0n, false],
    ["a minimum of nothing", limitsOf({ minimumAmount: 0n }), 0n, false],
    ["one below", limitsOf({ minimumAmount: 10_000n }), 9_999n, true],
    ["the minimum itself", limitsOf({ minimumAmount: 10_000n }), 10_000n, false],
    ["above what a double can tell apart", limitsOf({ minimumAmount: 2n ** 53n + 1n }), 2n ** 53n, true],
  ])("%s", (_, limits, value, refused) => {
    expect(belowMinimum(limits, value) !== undefined).toBe(refused);
  });

  test("is named to a payer who pays too little", () => {
    expect(belowMinimum(limitsOf({ minimumAmount: 10_000n }), 5n)?.message).toMatchInlineSnapshot(
      `"The amount of 5 is below the organization's minimum of 10000"`,
    );
  });
});

describe("payers with code", () => {
  const payer = `0x${"11".repeat(20)}` as const;
  const code = `0x${"22".repeat(32)}` as const;
  const refusing = limitsOf({ refusePayersWithCode: true });

  test.each([
    ["no limits at all", undefined, code, false],
    ["no such limit, and code that was not read", limitsOf({}), undefined, false],
    ["a plain account", refusing, null, false],
    ["code", refusing, code, true],
  ] as const)("%s", (_, limits, payerCode, refused) => {
    expect(refusedForCode(limits, payer, payerCode) !== undefined).toBe(refused);
  });

  test("are told to pay from a plain account", () => {
    expect(refusedForCode(refusing, payer, code)?.message).toMatchInlineSnapshot(
      `"The payer 0x1111111111111111111111111111111111111111 has code (a wallet, or EIP-7702), and this organization takes plain accounts only. Pay from a plain account"`,
    );
  });

  test("are not let through where their code was not read", () => {
    expect(() => refusedForCode(refusing, payer, undefined)).toThrow("was not read");
  });
});
