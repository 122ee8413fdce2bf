import type { Chain } from "../../chain/chain.ts";
import type { ConcludedTransaction } from "../../ledger/settlement.ts";
import type { Address } from "../../protocol/hex.ts";
import { finalitySeconds } from "../../protocol/refusals.ts";
import type { Flight, SenderOptions } from "./sender.ts";
import { isUnderstood, type Outcomes, type Slot, type TransactionStore } from "./slot.ts";

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
      // What a deep block holds is mined as what is decided is, and may stay undecided for ever.
      const open = [...slots.values()].filter(({ unprovenSince }) => unprovenSince === undefined);
      const lowestOpen = open.length === 0 ? undefined : Math.min(...open.map(({ txNonce }) => txNonce));
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

/** How long blocks may be replaced, in milliseconds; layer 2 chains take 15 minutes to be final. */
export const finalityMs = finalitySeconds * 1000;

/** Transactions that are compared with the chain together. */
const pageSize = 64;

/** txNonces that are filled in one round. */
const mostFilled = 64;

/**
 * Block times for which the chain must have mined fewer transactions than the ledger knows as decided: a node that
 * lags, or stands in for another, says so for a moment.
 */
const gapAfterBlocks = 3;

/** Compares what the ledger holds as decided with the chain, which may have dropped the blocks that said so. */
export type VanishedTransactions = {
  /**
   * Takes back what has vanished, so that it is sent again, and fills gaps among the txNonces. Costs one database
   * query while nothing was decided for half an hour and nothing is under way. True when something was opened again.
   *
   * `next` is the txNonce after the last one that was taken, read before `lowestOpen`, the lowest that is open: all
   * below either were decided when they were read, so that the chain, asked after that, has mined them.
   */
  find(known: { next: number; lowestOpen: number | undefined }): Promise<boolean>;
};

export type VanishedOptions = {
  chain: Chain;
  store: TransactionStore;
  account: Address;
  now: () => number;
  /** Has a no-op signed with a txNonce that nothing else needs. */
  fill(txNonce: number): Promise<boolean>;
};

export function createVanishedTransactions(options: VanishedOptions): VanishedTransactions {
  const { chain, store, account, now, fill } = options;
  const { blockTimeMs, confirmations } = chain.network;
  /** Unix milliseconds since when the chain's count is below the ledger's. */
  let gapSince: number | undefined;
  /** The first look of a process is at the count, however old the last transaction is. */
  let hasCompared = false;
  /** Below which txNonce all was decided in blocks that were there, while this one was. */
  let verified: { decidedBelow: number; blockNumber: bigint; blockHash: string } | undefined;

  /**
   * Takes back what was decided in blocks that have vanished. That a later transaction's block is still there says
   * nothing of an earlier transaction: it may have been mined again since, as another attempt of its txNonce. So each
   * transaction is looked at once it is decided, and again when the newest block of that time has vanished.
   */
  async function reopenVanished(decidedBelow: number): Promise<boolean> {
    const depth = BigInt(confirmations - 1);
    const head = await chain.head();
    // Nothing is decided by newer blocks.
    const blockNumber = head.number > depth ? head.number - depth : 0n;
    const [blockHash, formerHash] = await Promise.all([
      hashOf(blockNumber),
      verified === undefined ? undefined : hashOf(verified.blockNumber),
    ]);
    // A node that does not have a block, and may be behind, says nothing of it.
    let isCertain = blockHash !== null && formerHash !== null;
    const isStillThere = formerHash === null || formerHash === verified?.blockHash;
    const from = verified !== undefined && isStillThere ? verified.decidedBelow : 0;
    let hasReopened = false;
    let below: number | undefined;
    for (;;) {
      const page = await store.concluded({ from, limit: pageSize, ...(below !== undefined && { below }) });
      const hashes = await readBlockHashes(page);
      const isKnown = (transaction: ConcludedTransaction) => hashes.get(transaction.blockNumber) !== null;
      const vanished = page.filter(
        (transaction) =>
          isKnown(transaction) && hashes.get(transaction.blockNumber) !== transaction.blockHash.toLowerCase(),
      );
      if (vanished.length > 0) {
        await store.reopen(vanished);
        hasReopened = true;
      }
      isCertain &&= page.every(
        (transaction) =>
          transaction.txNonce >= decidedBelow ||
          (isKnown(transaction) && transaction.blockNumber <= blockNumber),
      );
      const last = page.at(-1);
      if (last === undefined || page.length < pageSize || now() - last.concludedAt > finalityMs) break;
      below = last.txNonce;
    }
    // The same block again at the end: none below it was replaced while the others were read.
    if (blockHash !== null && isCertain && !hasReopened && (await hashOf(blockNumber)) === blockHash) {
      verified = { decidedBelow, blockNumber, blockHash };
    }
    return hasReopened;
  }

  /** In lower case; null where the node does not have the block. */
  async function hashOf(number: bigint): Promise<string | null> {
    return (await chain.blockHash(number))?.toLowerCase() ?? null;
  }

  async function readBlockHashes(page: readonly ConcludedTransaction[]) {
    const numbers = [...new Set(page.map(({ blockNumber }) => blockNumber))];
    const hashes = await Promise.all(numbers.map(hashOf));
    return new Map(numbers.map((number, index) => [number, hashes[index]]));
  }

  /** Returns true if transactions are missing on the chain before the lowest that is open. */
  async function findGap(mined: number, lowestOpen: number): Promise<boolean> {
    if (mined >= lowestOpen) {
      gapSince = undefined;
      return false;
    }
    gapSince ??= now();
    if (now() - gapSince < gapAfterBlocks * blockTimeMs) return false;
    const below = Math.min(lowestOpen, mined + mostFilled);
    const concluded = (await store.concluded({ from: mined, below, limit: mostFilled }))
      // What made a payment of these with an earlier txNonce may well be mined.
      .filter(({ hasThisTxNonce }) => hasThisTxNonce);
    const receipts = await chain.receipts(concluded.map(({ hash }) => hash));
    // A node that has one of them on its chain contradicts its own count.
    if (receipts.some((receipt) => receipt !== null)) return false;
    await store.reopen(concluded);
    let hasFilled = concluded.length > 0;
    for (let txNonce = mined; txNonce < below; txNonce++) {
      if (await fill(txNonce)) hasFilled = true;
    }
    return hasFilled;
  }

  return {
    async find({ next, lowestOpen }) {
      const [newest] = await store.concluded({ limit: 1 });
      const isRecent = newest !== undefined && now() - newest.concludedAt <= finalityMs;
      if (hasCompared && !isRecent && lowestOpen === undefined && gapSince === undefined) return false;
      const decidedBelow = Math.min(next, lowestOpen ?? next);
      const [mined, hasReopened] = await Promise.all([
        chain.transactionCount(account),
        isRecent ? reopenVanished(decidedBelow) : false,
      ]);
      hasCompared = true;
      if (hasReopened) return true;
      return findGap(mined, decidedBelow);
    },
  };
}
