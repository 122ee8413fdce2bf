import type { Chain } from "../../chain/chain.ts";
import type { ConcludedTransaction } from "../../ledger/settlement.ts";
import type { Address } from "../../protocol/hex.ts";
import { finalitySeconds } from "../../protocol/refusals.ts";
import type { Flight, SenderOptions } from "./sender.ts";
import { isUnderstood, type Outcomes, type Slot, type TransactionStore } from "./slot.ts";

/**
 * Compares the transactions in flight with the ledger, which other instances write to as well, and the ledger with the
 * chain, which may have dropped blocks.
 */
export type LedgerComparison = {
  /** Adopts transactions from the ledger and drops those that others have concluded. Returns the new ones. */
  takeOver(): Promise<Slot[]>;
  /** Starts comparing every few blocks. Does nothing if already started. */
  start(): void;
  stop(): Promise<void>;
};

export type LedgerComparisonOptions = Pick<SenderOptions, "chain" | "ways" | "account" | "now" | "log"> & {
  flight: Flight;
  store: TransactionStore;
  outcomes: Outcomes;
  /** Signs and stores a no-op for a txNonce that nothing needs but the chain lacks; true if it did. */
  fill(txNonce: number): Promise<boolean>;
  /** Called after each comparison; `isNew` is true if new transactions are in flight. */
  onCompared(isNew: boolean): void;
  /** Sends and watches transactions in the ledger that this process does not know. */
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
      // A slot tracked after the query began may be missing from the result for that reason alone.
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
      // An unproven transaction is in a deep block and counts as mined; it may stay undecided forever.
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

/** How long blocks may still be replaced, in milliseconds; layer 2 chains take 15 minutes to finalize. */
export const finalityMs = finalitySeconds * 1000;

/** The number of transactions compared with the chain at once. */
const pageSize = 64;

/** The maximum number of txNonces filled in one round. */
const mostFilled = 64;

/**
 * How long, in block times, the chain must have mined fewer transactions than the ledger has decided: a node that lags,
 * or replaces another, reports this for a moment.
 */
const gapAfterBlocks = 3;

/** Compares transactions decided in the ledger with the chain, which may have dropped their blocks. */
export type VanishedTransactions = {
  /**
   * Reopens transactions that have vanished, so that they are sent again, and fills gaps between txNonces. Costs one database
   * query if nothing was decided for half an hour and nothing is in flight. Returns true if something was reopened.
   *
   * `next` is the txNonce after the last one taken, and is read before `lowestOpen`, the lowest open one. So all txNonces
   * below both were decided by then, and the chain, asked later, must have mined them.
   */
  find(known: { next: number; lowestOpen: number | undefined }): Promise<boolean>;
};

export type VanishedOptions = {
  chain: Chain;
  store: TransactionStore;
  account: Address;
  now: () => number;
  /** Signs a no-op for a txNonce that nothing else needs; true if it did. */
  fill(txNonce: number): Promise<boolean>;
};

export function createVanishedTransactions(options: VanishedOptions): VanishedTransactions {
  const { chain, store, account, now, fill } = options;
  const { blockTimeMs, confirmations } = chain.network;
  /** Since when the chain's count is below the ledger's, in unix milliseconds. */
  let gapSince: number | undefined;
  /** False until the first comparison, which always reads the chain's count, however old the last transaction is. */
  let hasCompared = false;
  /** All txNonces below `decidedBelow` were decided in blocks that existed while this block did. */
  let verified: { decidedBelow: number; blockNumber: bigint; blockHash: string } | undefined;

  /**
   * Reopens transactions decided in blocks that have vanished. That the block of a later transaction still exists proves
   * nothing about an earlier transaction, which may have been mined again since, as another attempt of its txNonce.
   * So each transaction is checked once it is decided, and again when the newest block of that time has vanished.
   */
  async function reopenVanished(decidedBelow: number): Promise<boolean> {
    const depth = BigInt(confirmations - 1);
    const head = await chain.head();
    // Newer blocks decide nothing.
    const blockNumber = head.number > depth ? head.number - depth : 0n;
    const [blockHash, formerHash] = await Promise.all([
      hashOf(blockNumber),
      verified === undefined ? undefined : hashOf(verified.blockNumber),
    ]);
    // A node that does not have a block may be behind, so it proves nothing about it.
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
    // Reads the same block again at the end: no block below it was replaced while the others were read.
    if (blockHash !== null && isCertain && !hasReopened && (await hashOf(blockNumber)) === blockHash) {
      verified = { decidedBelow, blockNumber, blockHash };
    }
    return hasReopened;
  }

  /** The hash in lower case; null if the node does not have the block. */
  async function hashOf(number: bigint): Promise<string | null> {
    return (await chain.blockHash(number))?.toLowerCase() ?? null;
  }

  async function readBlockHashes(page: readonly ConcludedTransaction[]) {
    const numbers = [...new Set(page.map(({ blockNumber }) => blockNumber))];
    const hashes = await Promise.all(numbers.map(hashOf));
    return new Map(numbers.map((number, index) => [number, hashes[index]]));
  }

  /** Returns true if the chain lacks transactions before the lowest open txNonce, and some were reopened or filled. */
  async function findGap(mined: number, lowestOpen: number): Promise<boolean> {
    if (mined >= lowestOpen) {
      gapSince = undefined;
      return false;
    }
    gapSince ??= now();
    if (now() - gapSince < gapAfterBlocks * blockTimeMs) return false;
    const below = Math.min(lowestOpen, mined + mostFilled);
    const concluded = (await store.concluded({ from: mined, below, limit: mostFilled }))
      // If a payment was made under an earlier txNonce, its transaction may well be mined.
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
