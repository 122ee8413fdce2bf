import { mostCost } from "../../chain/signing/read-transaction.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import { type Batch, isUnconfirmed, type Slot } from "./slot.ts";

/** The transactions of one account that the chain has not decided yet, as this process knows them: one slot a txNonce. */
export type Flight = {
  readonly slots: Map<number, Slot>;
  /** Takes up a stored transaction: a new slot, or another attempt and the settlements of a known one. */
  track(batch: Batch): Slot;
  addAttempt(slot: Slot, attempt: Attempt): void;
  /** Transactions that no block is known to hold. */
  unmined(): number;
  /** Transactions in blocks that too few RPC endpoints confirm, or that two say different things of. */
  unconfirmed(): number;
  /** Whether so much is undecided that no more should be sent. */
  isFull(): boolean;
  /** The most that they may cost together, in wei. */
  cost(): bigint;
  /** The most that all may cost which this process has known, those that are decided too, in wei. */
  spent(): bigint;
  /** Those among them that a block held which has vanished from the chain. */
  vanished(): number;
};

/**
 * Transactions that may be undecided, those in blocks too: each is asked about in every round. Deep confirmations take
 * some 150.
 */
const mostUndecided = 512;

export function createFlight(now: () => number): Flight {
  const slots = new Map<number, Slot>();
  let spent = 0n;

  function addAttempt(slot: Slot, attempt: Attempt): void {
    slot.attempts.push(attempt);
    const cost = mostCost(attempt);
    if (cost <= slot.cost) return;
    spent += cost - slot.cost;
    slot.cost = cost;
  }

  function track({ attempt, settlements, hasVanished = false }: Batch): Slot {
    const known = slots.get(attempt.txNonce);
    if (known !== undefined) {
      if (!known.attempts.some(({ hash }) => hash === attempt.hash)) addAttempt(known, attempt);
      known.settlements = settlements;
      return known;
    }
    const slot: Slot = {
      txNonce: attempt.txNonce,
      attempts: [attempt],
      settlements,
      state: "sent",
      hasVanished,
      cost: mostCost(attempt),
      rounds: 0,
      lastSentAt: now(),
      attemptedAt: now(),
      trackedAt: now(),
      unproven: 0,
      unconfirmed: 0,
      contradicted: 0,
    };
    slots.set(attempt.txNonce, slot);
    spent += slot.cost;
    return slot;
  }

  function* unmined(): Iterable<Slot> {
    for (const slot of slots.values()) if (slot.state === "sent") yield slot;
  }

  return {
    slots,
    track,
    addAttempt,
    unmined() {
      let count = 0;
      for (const _ of unmined()) count++;
      return count;
    },
    unconfirmed() {
      let count = 0;
      for (const slot of slots.values()) if (isUnconfirmed(slot)) count++;
      return count;
    },
    isFull: () => slots.size >= mostUndecided,
    cost() {
      let sum = 0n;
      for (const { cost } of unmined()) sum += cost;
      return sum;
    },
    spent: () => spent,
    vanished() {
      let count = 0;
      for (const { hasVanished } of unmined()) if (hasVanished) count++;
      return count;
    },
  };
}
