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

/** Sends the stored transactions of one account, and sends those in no block again. */
export type Sender = {
  /** Sends the bytes of all attempts in nonce order. Never throws: an unknown outcome is watched. */
  broadcast(slots: readonly Slot[]): Promise<void>;
  /** Checks once what has not been mined for a while, and sends it again. */
  rebroadcastStale(): Promise<void>;
};

export type SenderOptions = {
  chain: Chain;
  ways: WaysToPay;
  store: Pick<TransactionStore, "sendAgain">;
  flight: Flight;
  /** The account that signs the transactions. */
  account: Address;
  now: () => number;
  log: ServiceLog;
  /** Makes another attempt for a txNonce that has not been mined for a while, if one is due. */
  replace(slot: Slot, about: { isHeld: boolean; others: bigint }): Promise<Attempt | undefined>;
};

/** After this many block times without a receipt the same bytes are sent again. */
const resendAfterBlocks = 2;

/** After this many rounds of sending again, nodes are asked if any holds the transaction. */
const lookUpAfterRounds = 8;

/** The most that one round sends again, in hexadecimal digits (256 KiB), but at least one transaction. */
const mostSentAgain = 512 * 1024;

/** How long, in block times besides confirmations, a txNonce must seem used by a foreign transaction … */
const lostAfterBlocks = 15;

/** … and if the authorization of a settlement is used too: half an hour on chains with a block every 2 s. */
const lostForCertainAfterBlocks = 900;

export function createSender(options: SenderOptions): Sender {
  const { chain, ways, store, flight, account, now, log, replace } = options;
  const { network } = chain;
  const resendAfterMs = network.blockTimeMs * resendAfterBlocks;

  /**
   * Sends unmined transactions again: they may never have arrived, or may have been dropped. The lowest txNonce holds
   * up all others, so that is the one whose fees are raised.
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
    // A txNonce below the chain's count is used, whatever transaction used it. Raising its fee is useless, and must not
    // keep the others from being raised.
    const [lowest] = waiting.filter(({ txNonce }) => txNonce >= mined).sort((a, b) => a.txNonce - b.txNonce);
    if (lowest !== undefined && understood.includes(lowest)) await renew(lowest);
    // The node that accepted it may have dropped it, or may be the only one that has it.
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
   * Moves settlements away from txNonces used by other senders' transactions: nothing of ours will be mined there. A
   * node may know that a txNonce is used before it has the receipt. If the transaction is ours after all, a second one
   * would only revert. So this waits, and much longer if the payment may have been made.
   */
  async function abandonTakenNonces(silent: readonly Slot[], mined: number): Promise<void> {
    for (const slot of silent) {
      // If its receipt proves nothing, it is at least mined: no other sender used the txNonce.
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

  /** Returns true if two endpoints, or the only one, report the txNonce as used, and none of our transactions as mined. */
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
        // The watcher's endpoint does not show it: the next check asks another one first.
        slot.unproven++;
        return false;
      }
      if (--needed === 0) return true;
    }
    return false;
  }

  /**
   * Newest attempt first: once the node has it, it does not need the older ones. If the block of a transaction has vanished,
   * only the attempt in it is sent until higher fees are due, so that the payment keeps the hash that callers have.
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
      // It may have arrived or not: the receipts will show it, and the same bytes are sent again.
      log.warn({ network: network.name, err: error }, "a broadcast got no answer");
    }
  }

  return { broadcast, rebroadcastStale };
}

/** Returns true if one of the payments may have been made by a transaction whose receipt was not seen yet. */
async function mayHaveSettled(
  { attempts, settlements }: Slot,
  { chain, ways }: Pick<SenderOptions, "chain" | "ways">,
): Promise<boolean> {
  // A forward's authorization is always used; the contract itself refuses a second forward.
  if (attempts.every(({ kind }) => kind === "forward")) return false;
  const states = await Promise.all(
    settlements.map((claim) =>
      ways.settlingOf(claim.method).stateOf(chainOf(chain, claim), callOf(claim, chain.network)),
    ),
  );
  return states.some(({ used }) => used);
}

/** The undecided transactions of one account, as this process knows them: one slot per txNonce. */
export type Flight = {
  readonly slots: Map<number, Slot>;
  /** Adds a stored transaction: a new slot, or another attempt and the settlements of a known one. */
  track(batch: Batch): Slot;
  addAttempt(slot: Slot, attempt: Attempt): void;
  /** The number of transactions that are in no known block. */
  unmined(): number;
  /** The number of transactions in blocks that too few RPC endpoints confirm, or about which two disagree. */
  unconfirmed(): number;
  /** The number of transactions in deep blocks whose receipts do not prove what became of every payment. */
  unproven(): number;
  /** Returns true if too much is undecided to send more. Unproven transactions do not count: only proof can end them. */
  isFull(): boolean;
  /** The maximum cost of all unmined transactions, in wei. */
  cost(): bigint;
  /** The maximum cost of all transactions this process has known, including decided ones, in wei. */
  spent(): bigint;
  /** The number of unmined transactions whose block has vanished from the chain. */
  vanished(): number;
};

/**
 * The maximum number of undecided transactions, including those in blocks: each round asks for all of them. Deep
 * confirmations need some 150.
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
