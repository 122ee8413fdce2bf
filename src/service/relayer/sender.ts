import { type Chain, eachEndpoint, failureEndpoints } from "../../chain/chain.ts";
import { isReplacementDue } from "../../chain/fees.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Address } from "../../protocol/hex.ts";
import { mostCost } from "../../protocol/signed-transaction.ts";
import {
  type Batch,
  callOf,
  chainOf,
  isUnconfirmed,
  isUnderstood,
  type Slot,
  type TransactionStore,
} from "./slot.ts";

/** Sends the stored transactions of one account, and sends again what no block holds. */
export type Sender = {
  /** Sends the bytes of all attempts, in the order of their txNonces. Never throws: an unknown outcome is watched. */
  broadcast(slots: readonly Slot[]): Promise<void>;
  /** One round over what has not been mined for a while. */
  rebroadcastStale(): Promise<void>;
};

export type SenderOptions = {
  chain: Chain;
  ways: WaysToPay;
  store: Pick<TransactionStore, "sendAgain">;
  flight: Flight;
  /** Who signs the transactions. */
  account: Address;
  now: () => number;
  log: ServiceLog;
  /** Makes another attempt of a txNonce that has not been mined for a while, where one is due. */
  replace(slot: Slot, about: { isHeld: boolean; others: bigint }): Promise<Attempt | undefined>;
};

/** Block times without a receipt after which the same bytes are sent again. */
const resendAfterBlocks = 2;

/** Rounds of sending again after which it is looked up whether any node holds a transaction. */
const lookUpAfterRounds = 8;

/** The maximum that one round sends again, in hexadecimal digits: 256 KiB, but at least one transaction. */
const mostSentAgain = 512 * 1024;

/** Block times, besides confirmations, for which a txNonce must seem taken by a transaction that is none of ours … */
const lostAfterBlocks = 15;

/** … and where a settlement's authorization is used as well: half an hour on chains with a block every 2 s. */
const lostForCertainAfterBlocks = 900;

export function createSender(options: SenderOptions): Sender {
  const { chain, ways, store, flight, account, now, log, replace } = options;
  const { network } = chain;
  const resendAfterMs = network.blockTimeMs * resendAfterBlocks;

  /**
   * A transaction that is not mined for a while may never have arrived, or have been dropped: the same bytes go
   * out again. The lowest txNonce holds up all the others, so that it is the one to offer more for.
   */
  async function rebroadcastStale(): Promise<void> {
    const silent = [...flight.slots.values()].filter(
      (slot) => slot.state === "sent" && now() - slot.lastSentAt >= resendAfterMs,
    );
    if (silent.length === 0) return;
    const mined = await chain.transactionCount(account);
    const understood = silent.filter((slot) => isUnderstood(slot, ways));
    await abandonTakenNonces(understood, mined);
    const waiting = silent.filter(({ state }) => state === "sent");
    // A txNonce below the chain's count is taken, whichever transaction took it: a higher fee is useless there, and must
    // not keep the others from getting theirs.
    const [lowest] = waiting.filter(({ txNonce }) => txNonce >= mined).sort((a, b) => a.txNonce - b.txNonce);
    if (lowest !== undefined && understood.includes(lowest)) await renew(lowest);
    // The node that took it at first may have dropped it, or be alone with it.
    await broadcast(waiting, { everywhere: true });
  }

  async function renew(slot: Slot): Promise<void> {
    slot.rounds++;
    let isHeld = true;
    if (slot.rounds >= lookUpAfterRounds) {
      slot.rounds = 0;
      isHeld = await chain.knows(slot.attempts.map(({ hash }) => hash));
    }
    const attempt = await replace(slot, { isHeld, others: flight.cost() - slot.cost });
    if (attempt === undefined) return;
    flight.addAttempt(slot, attempt);
    slot.attemptedAt = now();
    slot.answered = undefined;
  }

  /**
   * Moves settlements away from txNonces that other senders' transactions took: nothing of ours is ever mined there.
   * A node may know that a txNonce is taken before it has the receipt that says by what, and should it be ours after
   * all, a second transaction would only be reverted; so this waits, and much longer where the payment may have been
   * made.
   */
  async function abandonTakenNonces(silent: readonly Slot[], mined: number): Promise<void> {
    for (const slot of silent) {
      // One whose receipt proves nothing was mined, by what that receipt says: the txNonce was not taken by another sender.
      if (slot.txNonce >= mined || slot.unproven > 0) {
        slot.takenSince = undefined;
        continue;
      }
      slot.takenSince ??= now();
      const blocks = (now() - slot.takenSince) / network.blockTimeMs - network.confirmations;
      if (blocks < lostAfterBlocks) continue;
      if (blocks < lostForCertainAfterBlocks && (await mayHaveSettled(slot, options))) continue;
      if (!(await isTakenByAnother(slot))) continue;
      log.error(
        { network: network.name, operator: account, txNonce: slot.txNonce },
        "another transaction took a txNonce: another program sends with this key; sending the payments again",
      );
      await store.sendAgain(slot, null);
      slot.state = "draining";
    }
  }

  /** Returns true if two endpoints, where there are two, say that the txNonce is used, and by none of our transactions. */
  async function isTakenByAnother(slot: Slot): Promise<boolean> {
    const { txNonce } = slot;
    const hashes = slot.attempts.map(({ hash }) => hash);
    let needed = Math.min(failureEndpoints, chain.endpoints().length);
    const views = eachEndpoint(chain, (view) =>
      Promise.all([view.transactionCount(account), view.receipts(hashes)]),
    );
    for await (const [mined, receipts] of views) {
      if (mined <= txNonce) return false;
      if (receipts.some((receipt) => receipt !== null)) {
        // The endpoint that the watcher asks does not show it: from the next look on another one is asked first.
        slot.unproven++;
        return false;
      }
      if (--needed === 0) return true;
    }
    return false;
  }

  /**
   * The newest attempt first: once the node has it, it has no use for the older ones. Of one whose block has vanished only
   * the attempt that was in it, until it is time to offer more: the hash that callers have stays the payment's.
   */
  function attemptsToSend({ attempts, answered, attemptedAt }: Slot): readonly Attempt[] {
    const earlier = attempts.find(({ hash }) => hash === answered);
    const isDue = isReplacementDue(network, now() - attemptedAt);
    return earlier === undefined || isDue ? attempts.toReversed() : [earlier];
  }

  async function broadcast(sent: readonly Slot[], options?: { everywhere: boolean }): Promise<void> {
    for (const slot of sent) slot.lastSentAt = now();
    const inOrder = [...sent].sort((a, b) => a.txNonce - b.txNonce);
    try {
      const attempts = inOrder.flatMap(attemptsToSend);
      let left = mostSentAgain;
      const bounded = attempts.filter(({ raw }, index) => {
        left -= raw.length;
        return index === 0 || left >= 0;
      });
      const hashes = bounded.map(({ hash }) => hash);
      await chain.broadcast(
        bounded.map(({ raw }) => raw),
        { ...options, hashes },
      );
    } catch (error) {
      // Whether it arrived is not known; the receipts will tell, and the same bytes go out again.
      log.warn({ network: network.name, err: error }, "a broadcast got no answer");
    }
  }

  return { broadcast, rebroadcastStale };
}

/** Returns true if one of the payments may have been made by a transaction whose receipt is not seen yet. */
async function mayHaveSettled(
  { attempts, settlements }: Slot,
  { chain, ways }: Pick<SenderOptions, "chain" | "ways">,
): Promise<boolean> {
  // Of a forward the authorization is always used; the contract refuses a second forward by itself.
  if (attempts.every(({ kind }) => kind === "forward")) return false;
  const states = await Promise.all(
    settlements.map((claim) =>
      ways.settlingOf(claim.method).stateOf(chainOf(chain, claim), callOf(claim, chain.network)),
    ),
  );
  return states.some(({ used }) => used);
}

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
  /** Transactions in blocks, deep enough, whose receipts do not prove what became of every payment. */
  unproven(): number;
  /** Returns true if so much is undecided that no more should be sent. What only proof can end does not count. */
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

  function track({ attempt, settlements, hasVanished = false, answered }: Batch): Slot {
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
      answered,
      cost: mostCost(attempt),
      rounds: 0,
      lastSentAt: now(),
      attemptedAt: now(),
      trackedAt: now(),
      unproven: 0,
      lookAgainAt: 0,
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

  function unproven(): number {
    let count = 0;
    for (const { unprovenSince } of slots.values()) if (unprovenSince !== undefined) count++;
    return count;
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
    unproven,
    isFull: () => slots.size - unproven() >= mostUndecided,
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
