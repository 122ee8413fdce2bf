import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ByPayer } from "../../ledger/ledger.ts";
import { GasBudgetError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";
import { createGasBudget, overGasBudget } from "./gas-budget.ts";

const kinds = ["withCode", "plain"] as const;
const cost = { withCode: 40n, plain: 10n };
const none = { withCode: 0, plain: 0 };

describe("what fits a budget", () => {
  const over = (budget: bigint, payer: keyof ByPayer<unknown>, spent: ByPayer<bigint>, unfinished = none) =>
    overGasBudget(budget, { spent, unfinished: { ...unfinished, gifts: 0n } }, { payer, cost });

  test.each<[string, bigint, ByPayer<bigint>, ByPayer<number>, boolean]>([
    ["a budget of nothing", 0n, { withCode: 0n, plain: 0n }, none, true],
    ["room for exactly one", 100n, { withCode: 20n, plain: 70n }, none, false],
    ["one wei too few", 99n, { withCode: 20n, plain: 70n }, none, true],
    ["taken by one under way", 100n, { withCode: 20n, plain: 70n }, { withCode: 0, plain: 1 }, true],
    [
      "with code under way, at what that costs",
      140n,
      { withCode: 0n, plain: 91n },
      { withCode: 1, plain: 0 },
      true,
    ],
  ])("of a plain account: %s", (_, budget, spent, unfinished, refused) => {
    expect(over(budget, "plain", spent, unfinished) !== undefined).toBe(refused);
  });

  test.each<[string, bigint, ByPayer<bigint>, ByPayer<number>, boolean]>([
    ["a quarter with room for exactly one", 400n, { withCode: 60n, plain: 0n }, none, false],
    ["one wei too few in the quarter", 396n, { withCode: 60n, plain: 0n }, none, true],
    ["one of its kind under way", 400n, { withCode: 60n, plain: 0n }, { withCode: 1, plain: 0 }, true],
    ["a quarter that is free, of a budget that is not", 400n, { withCode: 0n, plain: 361n }, none, true],
  ])("of a payer with code: %s", (_, budget, spent, unfinished, refused) => {
    expect(over(budget, "withCode", spent, unfinished) !== undefined).toBe(refused);
  });

  test.each([
    { name: "a quarter with room for exactly it", gift: 60n, spent: { withCode: 40n }, refused: false },
    { name: "one wei too few in the quarter", gift: 61n, spent: { withCode: 40n }, refused: true },
    { name: "another gift under way", gift: 60n, underWay: { gifts: 41n }, refused: true },
    { name: "a payer with code under way", gift: 61n, underWay: { withCode: 1 }, refused: true },
    { name: "room for it, and none for its settlement", gift: 60n, spent: { plain: 331n }, refused: true },
    { name: "no budget at all", budget: 0n, gift: 0n, refused: true },
    { name: "more than there is in the world", gift: 2n ** 256n, refused: true },
  ])("of a plain account that is given gas money: $name", (row) => {
    const { budget = 400n, gift, spent = {}, underWay = {}, refused } = row;
    const spending = {
      spent: { withCode: 0n, plain: 0n, ...spent },
      unfinished: { ...none, gifts: 0n, ...underWay },
    };
    expect(overGasBudget(budget, spending, { payer: "plain", cost, gift }) !== undefined).toBe(refused);
  });

  test("what does not is named", () => {
    const spent = { withCode: 95n, plain: 205n };
    const unfinished = { withCode: 2, plain: 1 };
    expect(over(300n, "plain", spent, unfinished)).toMatchInlineSnapshot(
      `"The organization's gas budget of the day is used up: 300 of 300 wei, and 3 settlements under way"`,
    );
    expect(over(400n, "withCode", spent, unfinished)).toMatchInlineSnapshot(
      `"The part of the organization's gas budget of the day that payers with code and gas money for approvals may use is used up: 95 of 100 wei, and 2 settlements under way"`,
    );
    const spending = { spent: { withCode: 0n, plain: 0n }, unfinished: { ...none, gifts: 90n } };
    expect(overGasBudget(400n, spending, { payer: "plain", cost, gift: 20n })).toMatchInlineSnapshot(
      `"The part of the organization's gas budget of the day that payers with code and gas money for approvals may use is used up: 0 of 100 wei, and 0 settlements under way, and gas money of 90 wei being given"`,
    );
    expect(overGasBudget(99n, spending, { payer: "plain", cost })).toMatchInlineSnapshot(
      `"The organization's gas budget of the day is used up: 0 of 99 wei, and 0 settlements under way, and gas money of 90 wei being given"`,
    );
  });

  test("is never exceeded when nothing costs more than estimated, and three quarters are left to plain accounts", () => {
    const step = fc.record({ settles: fc.boolean(), payer: fc.constantFrom(...kinds) });
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2_000n }), fc.array(step), (budget, steps) => {
        const spent = { withCode: 0n, plain: 0n };
        const unfinished = { ...none };
        for (const { settles, payer } of steps) {
          if (settles) {
            if (over(budget, payer, spent, unfinished) === undefined) unfinished[payer]++;
          } else if (unfinished[payer] > 0) {
            unfinished[payer]--;
            spent[payer] += cost[payer];
          }
          const reached = (kind: typeof payer) => spent[kind] + BigInt(unfinished[kind]) * cost[kind];
          expect(reached("withCode") * 4n).toBeLessThanOrEqual(budget);
          expect(reached("withCode") + reached("plain")).toBeLessThanOrEqual(budget);
        }
      }),
    );
  });
});

describe("many at once", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 12) });
    return () => vi.useRealTimers();
  });

  /** A ledger that tells of what was let through as soon as it has ended. */
  function scene({ own, usual }: { own: bigint | null; usual?: bigint | null }) {
    const limits = { base: { minimumAmount: null, dailyGasBudget: own, refusePayersWithCode: false } };
    const caller: Caller = {
      organization: { id: "shop", name: "Shop", recipients: {}, limits },
      keyId: "key",
      scopes: ["settle"],
    };
    const spent = { withCode: 0n, plain: 0n };
    let asked = 0;
    const gasSpending = async () => {
      asked++;
      return { spent: { ...spent }, unfinished: none };
    };
    const budget = createGasBudget({ gasSpending }, Date.now);
    const give = (gift: bigint, end: () => Promise<void>) =>
      budget.within(caller, { name: "base", dailyGasBudget: usual }, { payer: "plain", cost, gift }, end);
    const settle = (payer: (typeof kinds)[number] = "plain", name: "base" | "polygon" = "base") =>
      budget.within(caller, { name, dailyGasBudget: usual }, { payer, cost }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        spent[payer] += cost[payer];
        return "claimed";
      });
    return {
      settle,
      async giveAll(count: number, gift: bigint, { fails = false } = {}) {
        const all = Promise.allSettled(
          Array.from({ length: count }, () =>
            give(gift, async () => {
              await new Promise((resolve) => setTimeout(resolve, 5));
              if (fails) throw new RangeError("no key");
              spent.withCode += gift;
            }),
          ),
        );
        await vi.advanceTimersByTimeAsync(10);
        return (await all).filter(({ status }) => status === "fulfilled").length;
      },
      asked: () => asked,
      async settleAll(count: number, payer: (typeof kinds)[number] = "plain") {
        const all = Promise.allSettled(Array.from({ length: count }, () => settle(payer)));
        await vi.advanceTimersByTimeAsync(10);
        const ends = await all;
        const reasons = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
        for (const reason of reasons) expect(reason).toBeInstanceOf(GasBudgetError);
        return { settled: ends.length - reasons.length, reasons };
      },
    };
  }

  test("do not run past the budget; what is left over when they have ended can be used", async () => {
    const { settle, settleAll } = scene({ own: 35n });
    const { settled, reasons } = await settleAll(10);
    expect([settled, reasons[0].retryAfterSeconds]).toEqual([3, 5]);
    expect(await settle().catch((error: unknown) => error)).toMatchObject({
      retryAfterSeconds: 12 * 60 * 60,
      message:
        "The organization's gas budget of the day is used up: 30 of 35 wei, and 0 settlements under way; nothing was sent",
    });
  });

  test("of payers with code take a quarter of it, and plain accounts the rest", async () => {
    const { settleAll } = scene({ own: null, usual: 400n });
    expect((await settleAll(50, "withCode")).settled).toBe(2);
    expect((await settleAll(50)).settled).toBe(32);
  });

  test("gifts take the same quarter, and leave the rest to plain accounts", async () => {
    const { giveAll, settleAll } = scene({ own: null, usual: 400n });
    expect(await giveAll(50, 30n)).toBe(3);
    expect((await settleAll(50, "withCode")).settled).toBe(0);
    expect((await settleAll(50)).settled).toBe(31);
  });

  test("a gift that could not be made counts no longer", async () => {
    const { giveAll } = scene({ own: null, usual: 400n });
    expect(await giveAll(3, 30n, { fails: true })).toBe(0);
    expect(await giveAll(5, 30n)).toBe(3);
  });

  test("cost a query a second while half of the budget is free, and are counted all the same", async () => {
    const { settleAll, asked } = scene({ own: null, usual: 1_000n });
    for (let time = 0; time < 45; time++) await settleAll(1);
    expect(asked()).toBeLessThanOrEqual(2);
    expect((await settleAll(100)).settled).toBe(55);
    expect((await settleAll(1)).settled).toBe(0);
  });

  test("are not even looked up without a budget, and the organization's own takes the place of the usual one", async () => {
    const without = scene({ own: null, usual: null });
    expect((await without.settleAll(3)).settled).toBe(3);
    expect(without.asked()).toBe(0);
    expect((await scene({ own: 10n, usual: 1_000n }).settleAll(3)).settled).toBe(1);
    expect((await scene({ own: 1_000n, usual: 0n }).settleAll(3)).settled).toBe(3);
  });
});
