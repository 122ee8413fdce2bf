import type { EndpointReceipt } from "../../chain/chain.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import { createConfirmation } from "./confirmation.ts";
import { createFlight, createSender, type Flight, type SenderOptions } from "./sender.ts";
import type { Batch, Outcomes, Slot, TransactionStore } from "./slot.ts";
import { createVanishedTransactions } from "./vanished.ts";

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

/** The first look for a receipt, milliseconds after sending; from there the pause doubles up to the chain's pace. */
const firstPauseMs = 2;

/** Block times between two comparisons with the ledger, in which other instances leave their traces. */
const compareEveryBlocks = 2;

export function createWatcher(options: WatcherOptions): Watcher {
  const { chain, ways, store, outcomes, account, now, log, onRoom, replace, fill } = options;
  const { network } = chain;
  const flight = createFlight(now);
  const { slots, track } = flight;
  const { broadcast, rebroadcastStale } = createSender({
    ...{ chain, ways, store, flight, account, now, log },
    replace,
  });
  const longestPauseMs = network.blockTimeMs / 2;
  let watching = false;
  let watched: Promise<void> = Promise.resolve();
  let stopped = false;
  let pauseMs = firstPauseMs;
  let wake: () => void = () => {};
  let comparison: NodeJS.Timeout | undefined;
  let compared: Promise<void> = Promise.resolve();
  const confirmation = createConfirmation({ chain, ways, log, noteMined });
  const vanishedTransactions = createVanishedTransactions({
    chain,
    store,
    account,
    now,
    fill: async (txNonce) => (await fill(txNonce)) !== null,
  });

  /** Looks soon, because something was just sent. */
  function watch(): void {
    pauseMs = firstPauseMs;
    wake();
    if (!watching) watched = watchUntilEmpty();
  }

  async function watchUntilEmpty(): Promise<void> {
    watching = true;
    try {
      while (slots.size > 0 && !stopped) {
        await sleep(pauseMs);
        if (stopped) return;
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        if (await look()) {
          pauseMs = firstPauseMs;
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
      const decided = await readReceipts();
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

  async function readReceipts(): Promise<boolean> {
    const looked = [...slots.values()].filter(({ state }) => state !== "draining");
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
    // All at once, so that they share one write to the disk.
    const decided = await Promise.all(
      looked.map(async (slot) => {
        const found = mined.get(slot);
        if (found === undefined) return onReorg(slot);
        const depth = head === undefined ? 1n : head.number - found.receipt.blockNumber + 1n;
        return depth < BigInt(network.confirmations) ? noteMined(slot, found.receipt) : conclude(slot, found);
      }),
    );
    return decided.includes(true);
  }

  /** A block holds it, and may still vanish. The transaction makes room in the node's pool already. */
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
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      null,
    );
    return false;
  }

  async function conclude(
    slot: Slot,
    { attempt, receipt: found }: { attempt: Attempt; receipt: EndpointReceipt },
  ): Promise<boolean> {
    const confirmed = await confirmation.confirm(slot, attempt, found);
    if (confirmed === undefined) return false;
    const { receipt, decision } = confirmed;
    switch (decision.kind) {
      case "unproven":
        // From the next look on another node is asked first: this one may be wrong, or lie.
        slot.unproven++;
        log.error(
          { network: network.name, hash: receipt.hash },
          "a receipt reports success without proof of every settlement; ignoring it and reading again",
        );
        return false;
      case "redrive":
        log.warn(
          { network: network.name, hash: receipt.hash },
          "a transaction decided nothing about its payments; sending them singly",
        );
        await store.sendAgain(slot, attempt.hash);
        slot.state = "draining";
        return true;
      case "concluded":
        // Throws where another instance has moved a settlement elsewhere; the next comparison shows where to.
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
          decision.conclusions,
        );
        slots.delete(slot.txNonce);
        if (slot.hasVanished) reportReturn(slot, decision.conclusions);
        outcomes.announce(decision.conclusions.map(({ id }) => id));
        return true;
    }
  }

  /** What became of a transaction that was decided before, in a block that vanished. */
  function reportReturn({ txNonce }: Slot, conclusions: readonly Conclusion[]): void {
    const about = { network: network.name, operator: account, txNonce };
    const failed = conclusions.flatMap(({ id, state }) => (state === "failed" ? id : []));
    if (failed.length === 0) log.info(about, "a transaction whose block had vanished is mined again");
    else {
      const problem =
        "payments failed after the block that held them had vanished; some may have been answered as settled";
      log.error({ ...about, settlements: failed }, problem);
    }
  }

  /** Takes over what the ledger knows and lets go of what others have concluded. Gives what is new. */
  async function compareWithLedger(): Promise<Slot[]> {
    const asked = now();
    const open = await store.open();
    const known = new Set(slots.keys());
    for (const batch of open) track(batch);
    const stillOpen = new Set(open.map(({ attempt }) => attempt.txNonce));
    for (const [txNonce, slot] of slots) {
      // What was tracked since may be missing from the answer for that reason alone.
      if (stillOpen.has(txNonce) || slot.trackedAt >= asked) continue;
      slots.delete(txNonce);
      outcomes.announce(slot.settlements.map(({ id }) => id));
    }
    return [...slots.values()].filter(({ txNonce }) => !known.has(txNonce));
  }

  async function adopt(): Promise<number> {
    const left = await compareWithLedger();
    if (left.length > 0) {
      await broadcast(left);
      watch();
    }
    return left.length;
  }

  function compareRegularly(): void {
    comparison = setTimeout(() => {
      compared = compare().then(() => {
        if (!stopped) compareRegularly();
      });
    }, network.blockTimeMs * compareEveryBlocks).unref();
  }

  async function compare(): Promise<void> {
    try {
      const next = await store.next();
      const adopted = await compareWithLedger();
      if (adopted.length > 0) watch();
      onRoom();
      const lowestOpen = slots.size === 0 ? undefined : Math.min(...slots.keys());
      if (stopped || !(await vanishedTransactions.find({ next, lowestOpen }))) return;
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
      if (comparison === undefined) compareRegularly();
    },
    async adopt() {
      await adopt();
    },
    async stop() {
      stopped = true;
      clearTimeout(comparison);
      wake();
      await Promise.all([watched, compared]);
    },
  };
}
