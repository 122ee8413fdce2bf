import type { EndpointReceipt } from "../../chain/logs-and-receipts.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import { createConfirmation, type Reading } from "./confirmation.ts";
import { createLedgerComparison } from "./ledger-comparison.ts";
import { createFlight, createSender, type Flight, type SenderOptions } from "./sender.ts";
import { type Batch, isUnderstood, type Outcomes, type Slot, type TransactionStore } from "./slot.ts";

/** Tracks every transaction in flight of one account on one network until the chain has decided it. */
export type Watcher = Pick<
  Flight,
  "unmined" | "unconfirmed" | "unproven" | "isFull" | "cost" | "spent" | "vanished"
> & {
  /** Broadcasts a stored transaction and watches it. Never throws: an unknown outcome is watched. */
  send(batch: Batch): Promise<void>;
  /**
   * Broadcasts what an earlier process left in flight. From then on also adopts transactions of other instances, which
   * are watched and replaced like our own, and drops those that they have concluded.
   */
  start(): Promise<void>;
  /**
   * Sends and watches transactions in the ledger that this process does not know: the response to a commit may have
   * been lost.
   */
  adopt(): Promise<void>;
  stop(): Promise<void>;
};

export type WatcherOptions = Omit<SenderOptions, "flight" | "store"> & {
  store: TransactionStore;
  outcomes: Outcomes;
  /** Called when a transaction has left the flight. */
  onRoom(): void;
  /** Signs and stores a no-op for a txNonce that nothing needs but the chain lacks; null if the txNonce is open. */
  fill(txNonce: number): Promise<Batch | null>;
};

/**
 * Milliseconds between the first two checks for a receipt; the pause then doubles up to half a block time. The first
 * check is immediate: a node that mines on demand has mostly mined by the time it answers.
 */
const firstPauseMs = 1;

/** The longest pause between two checks of a mined transaction whose receipt proves nothing, in milliseconds. */
const longestLookMs = 60_000;

export function createWatcher(options: WatcherOptions): Watcher {
  const { chain, ways, store, outcomes, account, now, log, onRoom, replace } = options;
  const { network } = chain;
  const flight = createFlight(now);
  const { slots, track } = flight;
  const { broadcast, rebroadcastStale } = createSender({
    chain,
    ways,
    store,
    flight,
    account,
    now,
    log,
    replace,
  });
  const outcomeReader = createOutcomeReader({ chain, ways, store, flight, outcomes, account, now, log });
  const comparison = createLedgerComparison({
    chain,
    ways,
    store,
    flight,
    outcomes,
    account,
    now,
    log,
    adopt,
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

  /** Checks at once, because something was just sent. */
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

  /** Checks everything in flight once; true if anything was decided. Never throws: errors are retried next round. */
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
    unproven: flight.unproven,
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
      // Does nothing if it has started already: another part of the network may have failed to start the first time.
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

/** Reads what the chain has decided about the transactions in flight, and records it. */
export type OutcomeReader = {
  /**
   * Checks everything in flight once.
   *
   * @returns true if anything was decided
   * @throws when the chain or the ledger cannot be asked; the next round tries again
   */
  read(): Promise<boolean>;
};

type OutcomeReaderOptions = Pick<SenderOptions, "chain" | "ways" | "account" | "now" | "log"> & {
  flight: Flight;
  store: Pick<TransactionStore, "noteMined" | "conclude" | "sendAgain">;
  outcomes: Outcomes;
};

export function createOutcomeReader(options: OutcomeReaderOptions): OutcomeReader {
  const { chain, ways, store, flight, account, now, log } = options;
  const { network } = chain;
  const { slots } = flight;
  const confirmation = createConfirmation({ chain, ways, log, noteMined });

  /** Records that a block holds it, which may still vanish. The transaction already makes room in the node's pool. */
  async function noteMined(slot: Slot, receipt: EndpointReceipt): Promise<boolean> {
    if (slot.state !== "sent") return false;
    slot.state = "mined";
    slot.takenSince = undefined;
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      receipt.blockNumber,
    );
    return true;
  }

  async function onReorg(slot: Slot): Promise<boolean> {
    if (slot.state !== "mined") return false;
    log.warn(
      { network: network.name, txNonce: slot.txNonce },
      "a block with settlements vanished; they are under way again",
    );
    slot.state = "sent";
    slot.lastSentAt = 0;
    slot.unproven = 0;
    slot.unprovenSince = undefined;
    slot.lookAgainAt = 0;
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      null,
    );
    return false;
  }

  async function conclude(slot: Slot, attempt: Attempt, found: EndpointReceipt): Promise<boolean> {
    const confirmed = await confirmation.confirm(slot, attempt, found);
    if (confirmed === undefined) return false;
    const { receipt, decision } = confirmed;
    const about = { network: network.name, hash: receipt.hash };
    switch (decision.kind) {
      case "unproven":
        return keepUnproven(slot, receipt);
      case "redrive":
        log.warn(about, "a transaction decided nothing about its payments; sending them singly");
        await store.sendAgain(slot, attempt.hash);
        slot.state = "draining";
        return true;
      case "concluded":
        await record(slot, attempt, { receipt, conclusions: decision.conclusions });
        return true;
    }
  }

  /**
   * Keeps a transaction in a deep block undecided. It takes no room, and no later transaction waits for it. It is
   * checked until there is proof, less and less often.
   */
  async function keepUnproven(slot: Slot, receipt: EndpointReceipt): Promise<boolean> {
    if (slot.unprovenSince === undefined) {
      slot.unprovenSince = now();
      log.error(
        {
          network: network.name,
          operator: account,
          hash: receipt.hash,
          settlements: slot.settlements.map(({ id }) => id),
        },
        "a receipt reports success without proof of every settlement; its payments stay undecided, and it is read again from time to time",
      );
    }
    slot.lookAgainAt =
      now() + Math.min(longestLookMs, Math.max(now() - slot.unprovenSince, network.blockTimeMs));
    return noteMined(slot, receipt);
  }

  async function record(
    slot: Slot,
    attempt: Attempt,
    { receipt, conclusions }: Pick<Reading, "receipt"> & { conclusions: readonly Conclusion[] },
  ): Promise<void> {
    // Throws if another instance has moved a settlement elsewhere; the next comparison shows where.
    await store.conclude(
      {
        chainId: network.chainId,
        operator: account,
        txNonce: slot.txNonce,
        hash: attempt.hash,
        blockNumber: receipt.blockNumber,
        blockHash: receipt.blockHash,
        ...(receipt.gasCost !== undefined && { gasCost: receipt.gasCost }),
      },
      conclusions,
    );
    slots.delete(slot.txNonce);
    if (slot.hasVanished) reportReturn(slot, conclusions, options);
    options.outcomes.announce(conclusions.map(({ id }) => id));
  }

  return {
    async read() {
      const looked = [...slots.values()].filter(
        (slot) => slot.state !== "draining" && isUnderstood(slot, ways) && slot.lookAgainAt <= now(),
      );
      if (looked.length === 0) return false;
      const sent = looked.flatMap((slot) => slot.attempts.map((attempt) => ({ slot, attempt })));
      const [receipts, head] = await Promise.all([
        chain.receipts(
          sent.map(({ attempt }) => attempt.hash),
          { attempt: Math.max(0, ...looked.map(({ unproven }) => unproven)) },
        ),
        network.confirmations > 1 ? chain.head() : undefined,
      ]);
      const mined = new Map<Slot, { attempt: Attempt; receipt: EndpointReceipt }>();
      for (const [index, { slot, attempt }] of sent.entries()) {
        const receipt = receipts[index];
        if (receipt?.hash === attempt.hash) mined.set(slot, { attempt, receipt });
      }
      // All at once, so that they share one write to disk.
      const decided = await Promise.all(
        looked.map(async (slot) => {
          const found = mined.get(slot);
          if (found === undefined) return onReorg(slot);
          const { attempt, receipt } = found;
          const depth = head === undefined ? 1n : head.number - receipt.blockNumber + 1n;
          return depth < BigInt(network.confirmations)
            ? noteMined(slot, receipt)
            : conclude(slot, attempt, receipt);
        }),
      );
      return decided.includes(true);
    },
  };
}

/** Logs the outcome of a transaction that was decided before, in a block that vanished. */
function reportReturn(
  { txNonce }: Slot,
  conclusions: readonly Conclusion[],
  { chain, account, log }: Pick<OutcomeReaderOptions, "chain" | "account" | "log">,
): void {
  const about = { network: chain.network.name, operator: account, txNonce };
  const failed = conclusions.flatMap(({ id, state }) => (state === "failed" ? id : []));
  if (failed.length === 0) log.info(about, "a transaction whose block had vanished is mined again");
  else {
    const problem =
      "payments failed after the block that held them had vanished; some may have been answered as settled";
    log.error({ ...about, settlements: failed }, problem);
  }
}
