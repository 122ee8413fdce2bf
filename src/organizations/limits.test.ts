import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { belowMinimum, type Limits, overGasBudget } from "./limits.ts";

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

describe("the gas budget of a day", () => {
  test.each<[string, Limits | undefined, { spent: bigint; unfinished: number }, boolean]>([
    ["no limits at all", undefined, { spent: 10n ** 30n, unfinished: 1_000 }, false],
    ["no budget", limitsOf({ minimumAmount: 5n }), { spent: 10n ** 30n, unfinished: 1_000 }, false],
    ["a budget of nothing", limitsOf({ dailyGasBudget: 0n }), { spent: 0n, unfinished: 0 }, true],
    ["room for exactly one", limitsOf({ dailyGasBudget: 100n }), { spent: 90n, unfinished: 0 }, false],
    ["one wei too few", limitsOf({ dailyGasBudget: 99n }), { spent: 90n, unfinished: 0 }, true],
    ["taken by one under way", limitsOf({ dailyGasBudget: 100n }), { spent: 90n, unfinished: 1 }, true],
  ])("%s", (_, limits, spending, refused) => {
    expect(overGasBudget(limits, spending, 10n) !== undefined).toBe(refused);
  });

  test("is named to a settle beyond it", () => {
    const spending = { spent: 95n, unfinished: 2 };
    expect(overGasBudget(limitsOf({ dailyGasBudget: 100n }), spending, 10n)).toMatchInlineSnapshot(
      `"The organization's gas budget of the day is used up: 95 of 100 wei, and 2 settlements under way"`,
    );
  });

  test("is never exceeded when nothing costs more than estimated", () => {
    const wei = fc.bigInt({ min: 0n, max: 1_000n });
    fc.assert(
      fc.property(
        wei,
        fc.bigInt({ min: 1n, max: 50n }),
        fc.array(fc.boolean()),
        (budget, costOfOne, steps) => {
          let spent = 0n;
          let unfinished = 0;
          for (const settles of steps) {
            if (settles) {
              const limits = limitsOf({ dailyGasBudget: budget });
              if (overGasBudget(limits, { spent, unfinished }, costOfOne) === undefined) unfinished++;
            } else if (unfinished > 0) {
              unfinished--;
              spent += costOfOne;
            }
            expect(spent + BigInt(unfinished) * costOfOne).toBeLessThanOrEqual(budget);
          }
        },
      ),
    );
  });
});
