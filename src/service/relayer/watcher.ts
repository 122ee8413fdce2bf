import { createLedgerComparison } from "./ledger-comparison.ts";
import { createOutcomeReader } from "./outcome-reader.ts";
import { createFlight, createSender, type Flight, type SenderOptions } from "./sender.ts";
import type { Batch, Outcomes, TransactionStore } from "./slot.ts";

/** Knows every transaction in flight of one account on one network, until the chain has decided it. */
export type Watcher = Pick<Flight, "unmined" | "unconfirmed" | "isFull" | "cost" | "spent" | "vanished"> & {
  /** Broadcasts a stored transaction and watches it. Never throws: an unknown outcome is watched. */
  send(batch: Batch): Promise<void>;
  /**
   * Broadcasts what an earlier process left in flight, and from now on adopts what other instances leave: their
   * transactions are watched and driven on as our own, and what they concluded is let go.
   */
  start(): Promise<void>;
  /** Sends and watches what the ledger holds and this process does not know: a commit may have lost its answer. */
  adopt(): Promise<void>;
  stop(): Promise<void>;
};

export type WatcherOptions = Omit<SenderOptions, "flight" | "store"> & {
  store: TransactionStore;
  outcomes: Outcomes;
  /** Called when a transaction has left the flight. */
  onRoom(): void;
  /** Has a no-op signed and stored with a txNonce that nothing needs and the chain lacks; null where it is open. */
  fill(txNonce: number): Promise<Batch | null>;
};

/**
 * Milliseconds between the first two looks for a receipt; from there the pause doubles up to the chain's pace. The first
 * look is at once: a node that mines for each transaction has mostly done so when it has answered.
 */
const firstPauseMs = 1;

export function createWatcher(options: WatcherOptions): Watcher {
  const { chain, ways, store, outcomes, account, now, log, onRoom, replace } = options;
  const { network } = chain;
  const flight = createFlight(now);
  const { slots, track } = flight;
  const { broadcast, rebroadcastStale } = createSender({
    ...{ chain, ways, store, flight, account, now, log, replace },
  });
  const outcomeReader = createOutcomeReader({ chain, ways, store, flight, outcomes, account, log });
  const comparison = createLedgerComparison({
    ...{ chain, ways, store, flight, outcomes, account, now, log, adopt },
    fill: async (txNonce) => (await options.fill(txNonce)) !== null,
    onCompared(isNew) {
      if (isNew) watch();
      onRoom();
    },
  });
  const longestPauseMs = network.blockTimeMs / 2;
  let watching = false;
  let watched: Promise<void> = Promise.resolve();
  let stopped = false;
  let pauseMs = 0;
  let wake: () => void = () => {};

  /** Looks at once, because something was just sent. */
  function watch(): void {
    pauseMs = 0;
    wake();
    if (!watching) watched = watchUntilEmpty();
  }

  async function watchUntilEmpty(): Promise<void> {
    watching = true;
    try {
      while (slots.size > 0 && !stopped) {
        if (pauseMs > 0) await sleep(pauseMs);
        if (stopped) return;
        pauseMs = Math.min(Math.max(pauseMs * 2, firstPauseMs), longestPauseMs);
        if (await look()) {
          pauseMs = Math.min(pauseMs, firstPauseMs);
          onRoom();
        }
      }
    } finally {
      watching = false;
    }
  }

  function sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  /** One round over everything in flight; whether anything was decided. Never throws: it is tried again. */
  async function look(): Promise<boolean> {
    try {
      const decided = await outcomeReader.read();
      await rebroadcastStale();
      return decided;
    } catch (error) {
      log.warn(
        { network: network.name, err: error },
        "outcomes could not be read or recorded; looking again",
      );
      return false;
    }
  }

  async function adopt(): Promise<number> {
    const left = await comparison.takeOver();
    if (left.length > 0) {
      await broadcast(left);
      watch();
    }
    return left.length;
  }

  return {
    unmined: flight.unmined,
    unconfirmed: flight.unconfirmed,
    isFull: flight.isFull,
    cost: flight.cost,
    spent: flight.spent,
    vanished: flight.vanished,
    async send(batch) {
      await broadcast([track(batch)]);
      watch();
    },
    async start() {
      const left = await adopt();
      if (left > 0)
        log.info(
          { network: network.name, transactions: left },
          "continuing the transactions that were in flight",
        );
      // Started again where another part of the network could not be.
      comparison.start();
    },
    async adopt() {
      await adopt();
    },
    async stop() {
      stopped = true;
      wake();
      await Promise.all([watched, comparison.stop()]);
    },
  };
}
