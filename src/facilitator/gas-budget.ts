import { GasBudgetError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { overGasBudget } from "../organizations/limits.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { NetworkName } from "../protocol/networks.ts";

/** Lets settlements through as long as the gas budgets of their organizations cover them. */
export type GasBudget = {
  /**
   * Runs `claim`, which claims a settlement of at most `cost` wei, if the budget covers it.
   *
   * @throws GasBudgetError when it does not fit; then nothing was done.
   */
  within<T>(caller: Caller, network: NetworkName, cost: bigint, claim: () => Promise<T>): Promise<T>;
};

/** When only settlements under way stand in the way, whose cost is soon known. */
const underWayRetrySeconds = 5;

const dayMs = 24 * 60 * 60 * 1000;

export function createGasBudget(ledger: Pick<Ledger, "gasSpending">, now: () => number): GasBudget {
  /** Settlements of this process that were let through and may not be in the ledger yet. */
  const letThrough = new Map<string, number>();

  return {
    async within({ organization }, network, cost, claim) {
      const limits = organization.limits[network];
      if (limits?.dailyGasBudget == null) return claim();
      const account = `${organization.id} ${network}`;
      const { spent, unfinished } = await ledger.gasSpending(organization.id, network);
      // From here to the count below nothing may be awaited, or many at once would see the same room.
      const before = letThrough.get(account) ?? 0;
      const over = overGasBudget(limits, { spent, unfinished: unfinished + before }, cost);
      if (over !== undefined) {
        const isSpent = spent + cost > limits.dailyGasBudget;
        throw new GasBudgetError(
          `${over}; nothing was sent`,
          isSpent ? Math.ceil((dayMs - (now() % dayMs)) / 1000) : underWayRetrySeconds,
        );
      }
      letThrough.set(account, before + 1);
      try {
        return await claim();
      } finally {
        const left = (letThrough.get(account) ?? 1) - 1;
        if (left > 0) letThrough.set(account, left);
        else letThrough.delete(account);
      }
    },
  };
}
