import type { NetworkConfig } from "../../config/serve-config.ts";
import type { ByPayer, GasSpending, Outcomes } from "../../ledger/ledger.ts";
import { secondsLeftOfDay } from "../../protocol/moments.ts";
import { GasBudgetError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";

/**
 * A settlement that is to be paid for: whose it is, what one of each kind costs at most, and what is given to its payer before it
 * and costs the sponsor in gas, all in wei.
 */
export type Expense = { payer: keyof ByPayer<unknown>; cost: ByPayer<bigint>; gift?: bigint };

/** Lets settlements through as long as the gas budgets of their organizations cover them. */
export type GasBudget = {
  /**
   * Checks that the budget covers a settlement, before anything is sent for it.
   *
   * @throws GasBudgetError when it does not fit
   */
  require(
    caller: Caller,
    network: Pick<NetworkConfig, "name" | "dailyGasBudget">,
    expense: Expense,
  ): Promise<void>;
  /**
   * Runs `claim`, which claims a settlement or gives what its payer lacks, if the budget covers it.
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

/** The ledger's answer, and the settlements of this process that may not be in it yet. */
type Reading = { at: number; spending: GasSpending; uncounted: UnderWay };

/** Settlements by their number, and gifts by what they cost, in wei. */
type UnderWay = ByPayer<number> & { gifts: bigint };

const nothingUnderWay: Readonly<UnderWay> = { withCode: 0, plain: 0, gifts: 0n };

/** The budget of one organization on one network, as this process knows it. */
type Account = {
  /** Let through, and not claimed yet. */
  underWay: UnderWay;
  last?: Reading;
  /** The reading that has begun and not ended, and what it may miss. */
  next?: { reading: Promise<Reading>; uncounted: UnderWay } | undefined;
};

/** When only settlements under way stand in the way, whose cost is soon known. */
const underWayRetrySeconds = 5;

/** For so long a reading will do as long as it leaves half of the budget, so that most payments cost no query. */
const readingMs = 1_000;

/**
 * The part of a gas budget that payers with code, and gifts to new payers, may use: strangers make both for nothing. The rest is
 * kept for plain accounts.
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
      // From here to the counting nothing may be awaited, or many at once would see the same room.
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

/** An organization's spending, and what may be added to it. */
type Spending = { spent: ByPayer<bigint>; unfinished: UnderWay };

/** A reading, and what it may have missed. */
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
 * Why another settlement does not fit a gas budget of the day; undefined when it does. Settlements whose cost is not
 * known yet count with what they cost at most, so that many at once do not run past the budget.
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
