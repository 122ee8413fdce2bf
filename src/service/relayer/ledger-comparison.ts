import type { Flight, SenderOptions } from "./sender.ts";
import { isUnderstood, type Outcomes, type Slot, type TransactionStore } from "./slot.ts";
import { createVanishedTransactions } from "./vanished.ts";

/**
 * Compares what is in flight with the ledger, in which other instances leave their traces, and the ledger with the chain,
 * which may have dropped blocks.
 */
export type LedgerComparison = {
  /** Takes over what the ledger knows and lets go of what others have concluded. Gives what is new. */
  takeOver(): Promise<Slot[]>;
  /** Compares from now on, every few blocks. Does nothing when it does so already. */
  start(): void;
  stop(): Promise<void>;
};

export type LedgerComparisonOptions = Pick<SenderOptions, "chain" | "ways" | "account" | "now" | "log"> & {
  flight: Flight;
  store: TransactionStore;
  outcomes: Outcomes;
  /** Has a no-op signed and stored with a txNonce that nothing needs and the chain lacks; whether it was. */
  fill(txNonce: number): Promise<boolean>;
  /** Called after each comparison, with whether there is something new in flight. */
  onCompared(isNew: boolean): void;
  /** Sends what the ledger holds and this process does not know, and watches it. */
  adopt(): Promise<unknown>;
};

/** Block times between two comparisons. */
const compareEveryBlocks = 2;

export function createLedgerComparison(options: LedgerComparisonOptions): LedgerComparison {
  const { chain, ways, store, outcomes, account, flight, now, log, fill, onCompared, adopt } = options;
  const { network } = chain;
  const { slots } = flight;
  const vanishedTransactions = createVanishedTransactions({ chain, store, account, now, fill });
  let next: NodeJS.Timeout | undefined;
  let compared: Promise<void> = Promise.resolve();
  let stopped = false;

  async function takeOver(): Promise<Slot[]> {
    const asked = now();
    const open = await store.open();
    const known = new Set(slots.keys());
    for (const batch of open) flight.track(batch);
    const stillOpen = new Set(open.map(({ attempt }) => attempt.txNonce));
    for (const [txNonce, slot] of slots) {
      // What was tracked since may be missing from the answer for that reason alone.
      if (stillOpen.has(txNonce) || slot.trackedAt >= asked) continue;
      slots.delete(txNonce);
      outcomes.announce(slot.settlements.map(({ id }) => id));
    }
    const found = [...slots.values()].filter(({ txNonce }) => !known.has(txNonce));
    const foreign = found.filter((slot) => !isUnderstood(slot, ways));
    if (foreign.length > 0) {
      log.error(
        { network: network.name, operator: account, txNonces: foreign.map(({ txNonce }) => txNonce) },
        "payments are made in a way that this version does not know; an instance of the version that took them decides them. Upgrade this one",
      );
    }
    return found;
  }

  function compareRegularly(): void {
    next = setTimeout(() => {
      compared = compare().then(() => {
        if (!stopped) compareRegularly();
      });
    }, network.blockTimeMs * compareEveryBlocks).unref();
  }

  async function compare(): Promise<void> {
    try {
      const nextTxNonce = await store.next();
      const adopted = await takeOver();
      onCompared(adopted.length > 0);
      const lowestOpen = slots.size === 0 ? undefined : Math.min(...slots.keys());
      if (stopped || !(await vanishedTransactions.find({ next: nextTxNonce, lowestOpen }))) return;
      await adopt();
      const txNonces = [...slots.values()].flatMap((slot) => (slot.hasVanished ? slot.txNonce : []));
      log.error(
        { network: network.name, operator: account, txNonces },
        "transactions have vanished from the chain, by a reorganization deeper than CONFIRMATIONS: sending them again",
      );
    } catch (error) {
      log.warn(
        { network: network.name, err: error },
        "the ledger could not be compared with the chain; trying again",
      );
    }
  }

  return {
    takeOver,
    start() {
      if (next === undefined) compareRegularly();
    },
    async stop() {
      stopped = true;
      clearTimeout(next);
      await compared;
    },
  };
}
