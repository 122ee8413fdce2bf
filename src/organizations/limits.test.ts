import { describe, expect, test } from "vitest";
import { belowMinimum, type Limits } from "./limits.ts";

const limitsOf = (changes: Partial<Limits>): Limits => ({
  minimumAmount: null,
  dailyGasBudget: null,
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
