import type { Chain } from "../chain/chain.ts";
import type { ConcludedTransaction } from "../ledger/ledger.ts";
import type { Address } from "../protocol/hex.ts";
import type { TransactionStore } from "./transaction-store.ts";

/** How long blocks may be replaced, in milliseconds; layer 2 chains take 15 minutes to be final. */
export const finalityMs = 30 * 60 * 1000;

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
  const { blockTimeMs } = chain.network;
  /** Unix milliseconds since when the chain's count is below the ledger's. */
  let gapSince: number | undefined;
  /** The first look of a process is at the count, however old the last transaction is. */
  let hasCompared = false;

  /** Blocks hang together: where one is still there, so are all before it. */
  async function reopenVanished(newest: ConcludedTransaction): Promise<boolean> {
    let page: readonly ConcludedTransaction[] = [newest];
    let hasReopened = false;
    for (;;) {
      const hashes = await readBlockHashes(page);
      const canonical = page.findIndex(
        ({ blockNumber, blockHash }) => hashes.get(blockNumber) === blockHash.toLowerCase(),
      );
      const newer = canonical === -1 ? page : page.slice(0, canonical);
      // A node that does not have a block, and may be behind, says nothing of it.
      const vanished = newer.filter(({ blockNumber }) => typeof hashes.get(blockNumber) === "string");
      if (vanished.length > 0) {
        await store.reopen(vanished);
        hasReopened = true;
      }
      const last = page.at(-1);
      if (canonical !== -1 || last === undefined || now() - last.concludedAt > finalityMs) return hasReopened;
      page = await store.concluded({ below: last.txNonce, limit: pageSize });
    }
  }

  async function readBlockHashes(page: readonly ConcludedTransaction[]) {
    const numbers = [...new Set(page.map(({ blockNumber }) => blockNumber))];
    const hashes = await Promise.all(numbers.map((number) => chain.blockHash(number)));
    return new Map(numbers.map((number, index) => [number, hashes[index]?.toLowerCase()]));
  }

  /** Whether transactions are missing on the chain before the lowest that is open. */
  async function findGap(mined: number, lowestOpen: number): Promise<boolean> {
    if (mined >= lowestOpen) {
      gapSince = undefined;
      return false;
    }
    gapSince ??= now();
    if (now() - gapSince < gapAfterBlocks * blockTimeMs) return false;
    const below = Math.min(lowestOpen, mined + mostFilled);
    const concluded = await store.concluded({ from: mined, below, limit: mostFilled });
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
      const [mined, hasReopened] = await Promise.all([
        chain.transactionCount(account),
        isRecent ? reopenVanished(newest) : false,
      ]);
      hasCompared = true;
      if (hasReopened) return true;
      return findGap(mined, Math.min(next, lowestOpen ?? next));
    },
  };
}
