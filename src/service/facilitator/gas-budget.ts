import type { NetworkConfig } from "../../config/serve-config.ts";
import type { ByPayer, GasSpending, Outcomes } from "../../ledger/ledger.ts";
import { GasBudgetError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";

/** A settlement that is to be paid for: whose it is, and what one of each kind costs at most, in wei. */
export type Expense = { payer: keyof ByPayer<unknown>; cost: ByPayer<bigint> };

/** Lets settlements through as long as the gas budgets of their organizations cover them. */
export type GasBudget = {
  /**
   * Runs `claim`, which claims a settlement, if the budget covers it.
   *
   * @throws GasBudgetError when it does not fit; then nothing was done.
   */
  within<T>(
    caller: Caller,
    network: Pick<NetworkConfig, "name" | "dailyGasBudget">,
    expense: Expense,
    claim: () => Promise<T>,
  ): Promise<T>;
};

/** What the ledger said, and the settlements of this process that were let through and may not be in it. */
type Reading = { at: number; spending: GasSpending; uncounted: ByPayer<number> };

/** The budget of one organization on one network, as this process knows it. */
type Account = {
  /** Let through, and not claimed yet. */
  underWay: ByPayer<number>;
  last?: Reading;
  /** The reading that has begun and not ended, and what it may miss. */
  next?: { reading: Promise<Reading>; uncounted: ByPayer<number> } | undefined;
};

/** When only settlements under way stand in the way, whose cost is soon known. */
const underWayRetrySeconds = 5;

const dayMs = 24 * 60 * 60 * 1000;

/** For so long a reading will do as long as it leaves half of the budget, so that most payments cost no query. */
const readingMs = 1_000;

/** The part of a gas budget that payers with code may use: the rest is kept for plain accounts. */
const shareWithCode = 4n;

export function createGasBudget(outcomes: Pick<Outcomes, "gasSpending">, now: () => number): GasBudget {
  const accounts = new Map<string, Account>();

  async function read(account: Account, ask: () => Promise<GasSpending>): Promise<Reading> {
    if (account.next === undefined) {
      const uncounted = { ...account.underWay };
      const reading = ask().then((spending) => ({ at: now(), spending, uncounted }));
      account.next = { reading, uncounted };
    }
    const { reading } = account.next;
    try {
      account.last = await reading;
      return account.last;
    } finally {
      if (account.next?.reading === reading) account.next = undefined;
    }
  }

  return {
    async within({ organization }, { name, dailyGasBudget }, expense, claim) {
      const budget = organization.limits[name]?.dailyGasBudget ?? dailyGasBudget ?? null;
      if (budget === null) return claim();
      const key = `${organization.id} ${name}`;
      const account: Account = accounts.get(key) ?? { underWay: { withCode: 0, plain: 0 } };
      accounts.set(key, account);
      const { payer } = expense;
      const fitsTwice =
        account.last !== undefined &&
        now() - account.last.at < readingMs &&
        overGasBudget(budget / 2n, asSpending(account.last), expense) === undefined;
      if (!fitsTwice) {
        const reading = await read(account, () => outcomes.gasSpending(organization.id, name));
        // From here to the counting below nothing may be awaited, or many at once would see the same room.
        const over = overGasBudget(budget, asSpending(reading), expense);
        if (over !== undefined) {
          const nothingUnderWay = { spent: reading.spending.spent, unfinished: { withCode: 0, plain: 0 } };
          const isSpent = overGasBudget(budget, nothingUnderWay, expense) !== undefined;
          throw new GasBudgetError(
            `${over}; nothing was sent`,
            isSpent ? Math.ceil((dayMs - (now() % dayMs)) / 1000) : underWayRetrySeconds,
          );
        }
      }
      account.underWay[payer]++;
      for (const one of [account.last, account.next]) if (one !== undefined) one.uncounted[payer]++;
      try {
        return await claim();
      } finally {
        account.underWay[payer]--;
      }
    },
  };
}

/** What was read, and what it may have missed. */
function asSpending({ spending: { spent, unfinished }, uncounted }: Reading): GasSpending {
  return {
    spent,
    unfinished: {
      withCode: unfinished.withCode + uncounted.withCode,
      plain: unfinished.plain + uncounted.plain,
    },
  };
}

/**
 * Why another settlement does not fit a gas budget of the day; undefined when it does. Settlements whose cost is not
 * known yet count with what they cost at most, so that many at once do not run past the budget.
 *
 * @param budget in wei
 * @param spending of today
 */
export function overGasBudget(
  budget: bigint,
  { spent, unfinished }: GasSpending,
  { payer, cost }: Expense,
): string | undefined {
  const expected = (kind: typeof payer) =>
    spent[kind] + BigInt(unfinished[kind] + (kind === payer ? 1 : 0)) * cost[kind];
  if (payer === "withCode" && expected("withCode") > budget / shareWithCode) {
    return `The part of the organization's gas budget of the day that payers with code may use is used up: ${spent.withCode} of ${budget / shareWithCode} wei, and ${unfinished.withCode} settlements under way`;
  }
  if (expected("withCode") + expected("plain") <= budget) return undefined;
  return `The organization's gas budget of the day is used up: ${spent.withCode + spent.plain} of ${budget} wei, and ${unfinished.withCode + unfinished.plain} settlements under way`;
}
