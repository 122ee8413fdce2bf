import type { Chain, Receipt } from "../chain/chain.ts";
import { readSettlements } from "../chain/receipt-proof.ts";
import type { Attempt, Claim, Conclusion, Ledger } from "../ledger/ledger.ts";
import type { Log } from "../logging/logger.ts";
import type { Address } from "../protocol/hex.ts";
import type { Outcomes } from "./outcomes.ts";

/** A stored transaction and the settlements that ride on it. */
export type Shipment = { attempt: Attempt; settlements: readonly Claim[] };

/** Knows every transaction in flight of one operator on one network, until the chain has decided it. */
export type Watcher = {
  inFlight(): number;
  /** Broadcasts a stored transaction and watches it. Never throws: an unknown outcome is watched. */
  send(shipment: Shipment): Promise<void>;
  /** Broadcasts transactions of an earlier process again, several attempts of one txNonce included. */
  resume(shipments: readonly Shipment[]): Promise<void>;
  stop(): Promise<void>;
};

export type WatcherOptions = {
  chain: Chain;
  ledger: Ledger;
  outcomes: Outcomes;
  operator: Address;
  now: () => number;
  log: Log;
  /** Called when a transaction has left the flight. */
  onRoom(): void;
};

/** All attempts of one txNonce; the chain mines at most one of them. */
type Slot = { txNonce: number; attempts: Attempt[]; settlements: readonly Claim[]; lastSentAt: number };

/** The first look for a receipt, milliseconds after sending; from there the pause doubles up to the chain's pace. */
const firstPauseMs = 2;

export function createWatcher(options: WatcherOptions): Watcher {
  const { chain, ledger, outcomes, operator, now, log, onRoom } = options;
  const { network } = chain;
  const slots = new Map<number, Slot>();
  const longestPauseMs = network.blockTimeMs / 2;
  const resendAfterMs = network.blockTimeMs * 2;
  let watching = false;
  let watched: Promise<void> = Promise.resolve();
  let stopped = false;
  let pauseMs = firstPauseMs;
  let wake: () => void = () => {};

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
      await resendSilent();
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
    const sent = [...slots.values()].flatMap((slot) => slot.attempts.map((attempt) => ({ slot, attempt })));
    const [receipts, head] = await Promise.all([
      chain.receipts(sent.map(({ attempt }) => attempt.hash)),
      network.confirmations > 1 ? chain.head() : undefined,
    ]);
    // All at once, so that they share one write to the disk.
    const concluded = await Promise.all(
      sent.map(({ slot, attempt }, index) => {
        const receipt = receipts[index];
        if (!receipt || receipt.hash !== attempt.hash) return false;
        if (head !== undefined && head.number - receipt.blockNumber + 1n < BigInt(network.confirmations))
          return false;
        return conclude(slot, attempt, receipt);
      }),
    );
    return concluded.includes(true);
  }

  async function conclude(slot: Slot, attempt: Attempt, receipt: Receipt): Promise<boolean> {
    const conclusions = concludeAll(slot.settlements, receipt);
    if (conclusions === undefined) {
      log.error(
        { network: network.name, hash: receipt.hash },
        "a receipt says success without proof of every settlement; not believed, looking again",
      );
      return false;
    }
    await ledger.conclude(
      {
        chainId: network.chainId,
        operator,
        txNonce: slot.txNonce,
        hash: attempt.hash,
        blockNumber: receipt.blockNumber,
        blockHash: receipt.blockHash,
      },
      conclusions,
    );
    slots.delete(slot.txNonce);
    outcomes.announce(conclusions.map(({ id }) => id));
    return true;
  }

  /** How each settlement ended; undefined when the receipt does not account for all of them. */
  function concludeAll(settlements: readonly Claim[], receipt: Receipt): Conclusion[] | undefined {
    const proofs = readSettlements(receipt, network.facilitatorContract);
    const conclusions: Conclusion[] = [];
    for (const { id, asset, payer, authorizationNonce, value, recipient } of settlements) {
      const proof = proofs.find({ asset, payer, authorizationNonce, value, recipient });
      if (!receipt.succeeded)
        conclusions.push({ id, state: "failed", failure: "the transaction was reverted" });
      else if (proof === undefined) return undefined;
      else if (proof.settled) conclusions.push({ id, state: "settled" });
      else conclusions.push({ id, state: "failed", failure: proof.failure });
    }
    return conclusions;
  }

  /** A transaction that nobody has mined for a while may never have arrived, or have been dropped: same bytes again. */
  async function resendSilent(): Promise<void> {
    const silent = [...slots.values()].filter((slot) => now() - slot.lastSentAt >= resendAfterMs);
    if (silent.length > 0) await broadcast(silent);
  }

  async function broadcast(unordered: readonly Slot[]): Promise<void> {
    for (const slot of unordered) slot.lastSentAt = now();
    const inOrder = [...unordered].sort((a, b) => a.txNonce - b.txNonce);
    try {
      await chain.broadcast(inOrder.flatMap((slot) => slot.attempts.map(({ raw }) => raw)));
    } catch (error) {
      // Whether it arrived is not known; the receipts will tell, and the same bytes go out again.
      log.warn({ network: network.name, err: error }, "a broadcast got no answer");
    }
  }

  function track({ attempt, settlements }: Shipment): Slot {
    const known = slots.get(attempt.txNonce);
    if (known !== undefined) {
      known.attempts.push(attempt);
      return known;
    }
    const slot: Slot = { txNonce: attempt.txNonce, attempts: [attempt], settlements, lastSentAt: now() };
    slots.set(attempt.txNonce, slot);
    return slot;
  }

  return {
    inFlight: () => slots.size,
    async send(shipment) {
      await broadcast([track(shipment)]);
      watch();
    },
    async resume(shipments) {
      await broadcast([...new Set(shipments.map(track))]);
      watch();
    },
    async stop() {
      stopped = true;
      wake();
      await watched;
    },
  };
}
