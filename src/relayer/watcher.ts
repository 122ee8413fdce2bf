import type { Chain, Receipt } from "../chain/chain.ts";
import { mostCost } from "../chain/signing/read-transaction.ts";
import type { Conclusion } from "../ledger/ledger.ts";
import type { Attempt } from "../ledger/settlement.ts";
import type { ServiceLog } from "../logging/logger.ts";
import type { Address } from "../protocol/hex.ts";
import { decide } from "./conclusions.ts";
import type { Outcomes } from "./outcomes.ts";
import { type Batch, callOf, type Slot } from "./slot.ts";
import type { TransactionStore } from "./transaction-store.ts";
import { createVanishedTransactions } from "./vanished.ts";

/** Knows every transaction in flight of one account on one network, until the chain has decided it. */
export type Watcher = {
  /** Transactions that no block is known to hold. */
  unmined(): number;
  /** The most that they may cost together, in wei. */
  cost(): bigint;
  /** Those among them that a block held which has vanished from the chain. */
  vanished(): number;
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

export type WatcherOptions = {
  chain: Chain;
  store: TransactionStore;
  outcomes: Outcomes;
  /** Who signs the transactions. */
  account: Address;
  now: () => number;
  log: ServiceLog;
  /** Called when a transaction has left the flight. */
  onRoom(): void;
  /** Makes another attempt of a txNonce that has not been mined for a while, where one is due. */
  replace(slot: Slot, about: { isHeld: boolean; others: bigint }): Promise<Attempt | undefined>;
  /** Has a no-op signed and stored with a txNonce that nothing needs and the chain lacks; null where it is open. */
  fill(txNonce: number): Promise<Batch | null>;
};

/** The first look for a receipt, milliseconds after sending; from there the pause doubles up to the chain's pace. */
const firstPauseMs = 2;

/** Block times without a receipt after which the same bytes are sent again. */
const resendAfterBlocks = 2;

/** Rounds of sending again after which it is looked up whether any node holds a transaction. */
const lookUpAfterRounds = 8;

/** What is sent again in one round, in hexadecimal digits: 256 KiB, and one transaction at least. */
const mostSentAgain = 512 * 1024;

/** Block times, besides confirmations, for which a txNonce must seem taken by a transaction that is none of ours … */
const lostAfterBlocks = 15;

/** … and where a settlement's authorization is used as well: half an hour on chains with a block every 2 s. */
const lostForCertainAfterBlocks = 900;

/** Block times between two comparisons with the ledger, in which other instances leave their traces. */
const compareEveryBlocks = 2;

export function createWatcher(options: WatcherOptions): Watcher {
  const { chain, store, outcomes, account, now, log, onRoom, replace, fill } = options;
  const { network } = chain;
  const slots = new Map<number, Slot>();
  const longestPauseMs = network.blockTimeMs / 2;
  const resendAfterMs = network.blockTimeMs * resendAfterBlocks;
  let watching = false;
  let watched: Promise<void> = Promise.resolve();
  let stopped = false;
  let pauseMs = firstPauseMs;
  let wake: () => void = () => {};
  let comparison: NodeJS.Timeout | undefined;
  let compared: Promise<void> = Promise.resolve();
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
    const mined = new Map<Slot, { attempt: Attempt; receipt: Receipt }>();
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
  async function noteMined(slot: Slot, receipt: Receipt): Promise<boolean> {
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
      "a block with settlements vanished; driving them again",
    );
    slot.state = "sent";
    slot.lastSentAt = 0;
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      null,
    );
    return false;
  }

  async function conclude(slot: Slot, mined: { attempt: Attempt; receipt: Receipt }): Promise<boolean> {
    const { attempt, receipt } = mined;
    const isNoop = attempt.kind === "noop" && slot.settlements.length > 0;
    const { timestamp } = isNoop ? await chain.head() : { timestamp: 0n };
    const decision = decide(receipt, attempt, slot.settlements, {
      facilitatorContract: network.facilitatorContract,
      timestamp,
    });
    switch (decision.kind) {
      case "unproven":
        // From the next look on another node is asked first: this one may be wrong, or lie.
        slot.unproven++;
        log.error(
          { network: network.name, hash: receipt.hash },
          "a receipt says success without proof of every settlement; not believed, looking again",
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

  /**
   * A transaction that is not mined for a while may never have arrived, or have been dropped: the same bytes go
   * out again. The lowest txNonce holds up all the others, so that it is the one to offer more for.
   */
  async function rebroadcastStale(): Promise<void> {
    const silent = [...slots.values()].filter(
      (slot) => slot.state === "sent" && now() - slot.lastSentAt >= resendAfterMs,
    );
    if (silent.length === 0) return;
    const mined = await chain.transactionCount(account);
    await abandonTakenNonces(silent, mined);
    const waiting = silent.filter(({ state }) => state === "sent");
    // Below the chain's count a txNonce is taken, by whatever: more fees do nothing for it, and must not keep the others
    // from getting theirs.
    const [lowest] = waiting.filter(({ txNonce }) => txNonce >= mined).sort((a, b) => a.txNonce - b.txNonce);
    if (lowest !== undefined) await renew(lowest);
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
    const attempt = await replace(slot, { isHeld, others: costInFlight() - slot.cost });
    if (attempt === undefined) return;
    addAttempt(slot, attempt);
    slot.attemptedAt = now();
  }

  function addAttempt(slot: Slot, attempt: Attempt): void {
    slot.attempts.push(attempt);
    const cost = mostCost(attempt);
    if (cost > slot.cost) slot.cost = cost;
  }

  function costInFlight(): bigint {
    let sum = 0n;
    for (const { state, cost } of slots.values()) if (state === "sent") sum += cost;
    return sum;
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
      if (blocks < lostForCertainAfterBlocks && (await mayHaveSettled(slot))) continue;
      log.error(
        { network: network.name, operator: account, txNonce: slot.txNonce },
        "another transaction took a txNonce: somebody else sends with this key; sending its payments again",
      );
      await store.sendAgain(slot, null);
      slot.state = "draining";
    }
  }

  /** Whether one of the payments may have been made by a transaction whose receipt is not seen yet. */
  async function mayHaveSettled({ attempts, settlements }: Slot): Promise<boolean> {
    // Of a forward the authorization is always used; the contract refuses a second forward by itself.
    if (attempts.every(({ kind }) => kind === "forward")) return false;
    const states = await Promise.all(
      settlements.map((claim) => chain.diagnose(callOf(claim, network.facilitatorContract))),
    );
    return states.some(({ authorizationUsed }) => authorizationUsed);
  }

  async function broadcast(sent: readonly Slot[], options?: { everywhere: boolean }): Promise<void> {
    for (const slot of sent) slot.lastSentAt = now();
    const inOrder = [...sent].sort((a, b) => a.txNonce - b.txNonce);
    try {
      // The newest attempt first: once the node has it, it has no use for the older ones.
      const attempts = inOrder.flatMap((slot) => slot.attempts.toReversed());
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
    };
    slots.set(attempt.txNonce, slot);
    return slot;
  }

  return {
    unmined() {
      let count = 0;
      for (const { state } of slots.values()) if (state === "sent") count++;
      return count;
    },
    cost: costInFlight,
    vanished() {
      let count = 0;
      for (const { state, hasVanished } of slots.values()) if (state === "sent" && hasVanished) count++;
      return count;
    },
    async send(batch) {
      await broadcast([track(batch)]);
      watch();
    },
    async start() {
      const left = await adopt();
      if (left > 0) log.info({ network: network.name, transactions: left }, "took up what was in flight");
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
