import { type Kysely, sql } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import { padded, together } from "../util/concurrency.ts";
import { createAddAttempt, createClaim, createFindIdentifier } from "./claim.ts";
import { createConclude, createConcluded } from "./conclude.ts";
import type { Database } from "./database/database.ts";
import { repeatable } from "./database/retrying.ts";
import { createGasSpending } from "./gas-spending.ts";
import { createIdempotency, createUndelivered } from "./idempotency.ts";
import { createLeases } from "./leases.ts";
import type { Ledger } from "./ledger.ts";
import { createOperatorChanges } from "./operator-changes.ts";
import { createList, createOpenAttempts, createRecentSettles } from "./queries.ts";
import { createFailures, createForwards } from "./recover-failures.ts";
import { createRedrive, createReopen } from "./reopen.ts";
import { createRetryQueue } from "./retry-queue.ts";
import { type LedgerTables, lowerCase, toSafeInteger, toSettlement } from "./rows.ts";
import type { Settlement } from "./settlement.ts";
import { introduceSender, readNextTxNonce } from "./tx-nonces.ts";

export type LedgerOptions = {
  /** An open and migrated database. */
  db: Database;
  /** Names this process among those that share the database; a new one for every start. */
  instanceId: string;
  /** Unix milliseconds. Instances that share a database need clocks that agree to well within `leaseMs`. */
  now: () => number;
  /** How long a lease lasts without renewal, in milliseconds; 30 s by default. */
  leaseMs?: number;
};

/** The ledger in a database. Any number of instances may share one. */
export function createLedger(options: LedgerOptions): Ledger {
  const { instanceId, now, leaseMs = 30_000 } = options;
  const db = options.db.$extendTables<LedgerTables>();
  const retryQueue = createRetryQueue();
  const undelivered = createUndelivered(retryQueue);
  const find = together(createFindAll(db), { most: 64, anyNumber: true });
  return {
    ...createLeases(db, retryQueue, undelivered, { instanceId, now, leaseMs }),
    ...createIdempotency(db, retryQueue, undelivered, { instanceId, now, leaseMs }),
    ...createFailures(db, now),
    ...createForwards(db, now),
    ...createOperatorChanges(db, now),
    ...createOpenAttempts(db),
    ...createConcluded(db),
    ...createReopen(db, now),
    claim: createClaim(db, now),
    conclude: createConclude(db, now),
    addAttempt: createAddAttempt(db),
    redrive: createRedrive(db, now),
    list: createList(db),
    recentSettles: createRecentSettles(db),
    gasSpending: createGasSpending(db, now),
    findIdentifier: createFindIdentifier(db, now),

    async noteMined(ids, blockNumber) {
      if (ids.length === 0) return;
      await repeatable(() =>
        db
          .updateTable("settlements")
          .set({ block_number: blockNumber === null ? null : toSafeInteger(blockNumber) })
          .where("id", "in", ids.map(lowerCase))
          .where("state", "=", "submitted")
          .execute(),
      );
    },

    async unfinished() {
      const rows = await db
        .selectFrom("settlements")
        .select(({ fn }) => [
          "network",
          fn.countAll<number | bigint | string>().as("count"),
          fn.min<number | bigint | string>("claimed_at").as("oldest"),
        ])
        // In the words of the partial index, which a bound parameter would not match.
        .where("state", "=", sql.lit("submitted" as const))
        .groupBy("network")
        .execute();
      return rows.map(({ network, count, oldest }) => ({
        network,
        count: Number(count),
        oldestClaimedAt: Number(oldest),
      }));
    },

    async recoveryCounts() {
      const rows = await db
        .selectFrom("recoveries")
        .innerJoin("settlements", "settlements.id", "recoveries.id")
        .select(({ fn }) => [
          "settlements.network",
          "recoveries.state",
          fn.countAll<number | bigint | string>().as("count"),
        ])
        .groupBy(["settlements.network", "recoveries.state"])
        .execute();
      return rows.map((row) => ({ ...row, count: Number(row.count) }));
    },

    retryWrites: retryQueue.drain,

    finishWrites: retryQueue.finish,

    nextTxNonce: (chainId, address) => readNextTxNonce(db, { chainId, address }),

    find: (id) => find(lowerCase(id)),

    introduceOperator: (chainId, address, txNonce) =>
      introduceSender(db, { chainId, address }, txNonce, { movesUp: false }),
  };
}

/** Reads settlements by their ids, in that order. */
function createFindAll(db: Kysely<LedgerTables>) {
  return async (ids: readonly Hex[]): Promise<(Settlement | null)[]> => {
    const rows = await db.selectFrom("settlements").selectAll().where("id", "in", padded(ids)).execute();
    const found = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = found.get(id);
      return row === undefined ? null : toSettlement(row);
    });
  };
}
