import type { NetworkConfig } from "../../config/serve-config.ts";
import type { ByPayer, GasSpending, Outcomes } from "../../ledger/ledger.ts";
import { secondsLeftOfDay } from "../../protocol/moments.ts";
import { GasBudgetError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";

/**
 * The cost of a settlement: its kind of payer, the most that a settlement of each kind costs, and the gift to its
 * payer including the sponsor's gas. All in wei.
 */
export type Expense = { payer: keyof ByPayer<unknown>; cost: ByPayer<bigint>; gift?: bigint };

/** Lets settlements through as long as the gas budget of their organization covers them. */
export type GasBudget = {
  /**
   * Checks that the budget covers a settlement before anything is sent for it.
   *
   * @throws GasBudgetError when it does not fit
   */
  require(
    caller: Caller,
    network: Pick<NetworkConfig, "name" | "dailyGasBudget">,
    expense: Expense,
  ): Promise<void>;
  /**
   * Runs `claim`, which claims a settlement or gives its payer gas money, if the budget covers it.
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

/** The spending read from the ledger, and the settlements of this process that it may not contain yet. */
type Reading = { at: number; spending: GasSpending; uncounted: UnderWay };

/** The number of settlements by kind of payer, and the cost of gifts in wei. */
type UnderWay = ByPayer<number> & { gifts: bigint };

const nothingUnderWay: Readonly<UnderWay> = { withCode: 0, plain: 0, gifts: 0n };

/** The budget of one organization on one network, as this process knows it. */
type Account = {
  /** Let through, but not claimed yet. */
  underWay: UnderWay;
  last?: Reading;
  /** The read in progress, if any, and the settlements that it may miss. */
  next?: { reading: Promise<Reading>; uncounted: UnderWay } | undefined;
};

/** Suggested to callers if only settlements in flight stand in the way: their cost is known soon. */
const underWayRetrySeconds = 5;

/** A reading up to this age is good enough if it leaves half of the budget, so that most payments cost no query. */
const readingMs = 1_000;

/**
 * The budget is divided by this for the part open to payers with code and to gifts to new payers: strangers can
 * make both for nothing. The rest is reserved for plain accounts.
 */
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

  /** Runs `act` if the budget covers the expense. `account` is undefined without a budget. */
  async function ifCovered<T>(
    { organization }: Caller,
    { name, dailyGasBudget }: Pick<NetworkConfig, "name" | "dailyGasBudget">,
    expense: Expense,
    act: (account: Account | undefined) => T | Promise<T>,
  ): Promise<T> {
    const budget = organization.limits[name]?.dailyGasBudget ?? dailyGasBudget ?? null;
    if (budget === null) return act(undefined);
    const key = `${organization.id} ${name}`;
    const account: Account = accounts.get(key) ?? { underWay: { ...nothingUnderWay } };
    accounts.set(key, account);
    const fitsTwice =
      account.last !== undefined &&
      now() - account.last.at < readingMs &&
      overGasBudget(budget / 2n, asSpending(account.last), expense) === undefined;
    if (!fitsTwice) {
      const reading = await read(account, () => outcomes.gasSpending(organization.id, name));
      // Nothing may be awaited between here and the counting, or concurrent callers would see the same room.
      const over = overGasBudget(budget, asSpending(reading), expense);
      if (over !== undefined) {
        const { spent } = reading.spending;
        const isSpent = overGasBudget(budget, { spent, unfinished: nothingUnderWay }, expense) !== undefined;
        throw new GasBudgetError(
          `${over}; nothing was sent`,
          isSpent ? secondsLeftOfDay(now()) : underWayRetrySeconds,
        );
      }
    }
    return act(account);
  }

  return {
    require: (caller, network, expense) => ifCovered(caller, network, expense, () => undefined),
    within: (caller, network, expense, claim) =>
      ifCovered(caller, network, expense, async (account) => {
        if (account === undefined) return claim();
        const { underWay, last, next } = account;
        count(underWay, expense, 1);
        for (const one of [last, next]) if (one !== undefined) count(one.uncounted, expense, 1);
        try {
          return await claim();
        } finally {
          count(underWay, expense, -1);
        }
      }),
  };
}

function count(underWay: UnderWay, { payer, gift = 0n }: Expense, by: 1 | -1): void {
  underWay[payer] += by;
  underWay.gifts += BigInt(by) * gift;
}

/** The spending of an organization, and the settlements that may add to it. */
type Spending = { spent: ByPayer<bigint>; unfinished: UnderWay };

/** Adds to a reading what it may have missed. */
function asSpending({ spending: { spent, unfinished }, uncounted }: Reading): Spending {
  return {
    spent,
    unfinished: {
      withCode: unfinished.withCode + uncounted.withCode,
      plain: unfinished.plain + uncounted.plain,
      gifts: uncounted.gifts,
    },
  };
}

/**
 * Explains why another settlement does not fit into a daily gas budget; undefined if it fits. Settlements of
 * unknown cost count with their maximum, so that a burst cannot exceed the budget.
 *
 * @param budget in wei
 * @param spending of today
 */
export function overGasBudget(
  budget: bigint,
  { spent, unfinished }: Spending,
  { payer, cost, gift }: Expense,
): string | undefined {
  const expected = (kind: typeof payer) =>
    spent[kind] + BigInt(unfinished[kind] + (kind === payer ? 1 : 0)) * cost[kind];
  const byStrangers = expected("withCode") + unfinished.gifts + (gift ?? 0n);
  const gifts = unfinished.gifts === 0n ? "" : `, and gas money of ${unfinished.gifts} wei being given`;
  if ((payer === "withCode" || gift !== undefined) && byStrangers > budget / shareWithCode) {
    return `The part of the organization's gas budget of the day that payers with code and gas money for approvals may use is used up: ${spent.withCode} of ${budget / shareWithCode} wei, and ${unfinished.withCode} settlements under way${gifts}`;
  }
  if (byStrangers + expected("plain") <= budget) return undefined;
  return `The organization's gas budget of the day is used up: ${spent.withCode + spent.plain} of ${budget} wei, and ${unfinished.withCode + unfinished.plain} settlements under way${gifts}`;
}
