import { expect, test } from "vitest";
import { GasBudgetError } from "../errors.ts";
import type { Caller } from "../organizations/organizations.ts";
import { createGasBudget } from "./gas-budget.ts";

const noon = Date.UTC(2026, 0, 1, 12);

/** A ledger that tells of what was let through as soon as it has ended, at 10 wei each. */
function scene(dailyGasBudget: bigint | null) {
  const limits = { base: { minimumAmount: null, dailyGasBudget } };
  const caller: Caller = {
    organization: { id: "shop", name: "Shop", recipients: {}, limits },
    keyId: "key",
    scopes: ["settle"],
  };
  let spent = 0n;
  let asked = 0;
  const gasSpending = async () => {
    asked++;
    return { spent, unfinished: 0 };
  };
  const budget = createGasBudget({ gasSpending }, () => noon);
  return {
    settle: (network: "base" | "polygon" = "base") =>
      budget.within(caller, network, 10n, async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        spent += 10n;
        return "claimed";
      }),
    asked: () => asked,
  };
}

test("many at once do not run past the budget; what is left over when they have ended can be used", async () => {
  const { settle } = scene(35n);
  const ends = await Promise.allSettled(Array.from({ length: 10 }, () => settle()));
  expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  const reasons = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  for (const reason of reasons) expect(reason).toBeInstanceOf(GasBudgetError);
  expect(reasons[0].retryAfterSeconds).toBe(5);

  const late: unknown = await settle().catch((error: unknown) => error);
  expect(late).toMatchObject({
    retryAfterSeconds: 12 * 60 * 60,
    message:
      "The organization's gas budget of the day is used up: 30 of 35 wei, and 0 settlements under way; nothing was sent",
  });
});

test("without a budget the ledger is not even asked", async () => {
  const { settle, asked } = scene(null);
  await settle();
  const other = scene(0n);
  await other.settle("polygon");
  expect(asked() + other.asked()).toBe(0);
});
