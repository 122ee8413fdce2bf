import { type Kysely, sql } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { padded, together } from "../util/concurrency.ts";
import { createChannels, findForeign, keepingChannels } from "./channels.ts";
import { bindIdentifiers, createAddAttempt, createClaim, createFindIdentifier } from "./claim.ts";
import { createConclude, createConcludedForwards, createConcludedSettles } from "./conclude.ts";
import { createGifts } from "./create-gifts.ts";
import { clockOf, type Database, type DatabaseClock } from "./database/database.ts";
import { inTransaction, repeatable } from "./database/transactions.ts";
import { addingToSpending, createGasSpending, toGwei } from "./gas-spending.ts";
import { createIdempotency, createUndelivered } from "./idempotency.ts";
import { createLeases, type LeaseOptions } from "./leases.ts";
import type { Claims, Leases, Ledger, Outcomes } from "./ledger.ts";
import {
  createHasPaidLast,
  createList,
  createOpenAttempts,
  createOpenForwards,
  createRecentSettles,
} from "./queries.ts";
import { createFailureLooks, createFailureQueue, createForwards } from "./recover-failures.ts";
import type { Recoveries } from "./recoveries.ts";
import { createFillTxNonce, createRedrive, createReopenForwards, createReopenSettles } from "./reopen.ts";
import { createRetryQueue } from "./retry-queue.ts";
import { fromSettlement, type LedgerTables, lowerCase, toSafeInteger, toSettlement } from "./rows.ts";
import { noTransaction, type Settlement } from "./settlement.ts";
import { createOperatorChanges, introduceSender, lockingAccounts, readNextTxNonce } from "./tx-nonces.ts";

export type LedgerOptions = {
  db: Database;
  /** Identifies this process among those that share the database; a new one for every start. */
  instanceId: string;
  /** Replaces the database's clock; in unix milliseconds. */
  now?: () => number;
  /** How long a lease lasts without renewal, in milliseconds; 30 s by default. */
  leaseMs?: number;
} & Pick<LeaseOptions, "onLostDelivery">;

/** Creates the ledger on a database, which any number of instances may share. */
export function createLedger({ db: database, leaseMs = 30_000, ...options }: LedgerOptions): Ledger {
  const db = database.$extendTables<LedgerTables>();
  const clock: DatabaseClock = options.now === undefined ? clockOf(db) : { now: options.now };
  const { now } = clock;
  return {
    claims: createClaims(db, now),
    outcomes: createOutcomes(db, now),
    leases: createAllLeases(db, { ...options, clock, leaseMs }),
    recoveries: createRecoveries(db, now),
    gifts: createGifts(db, now),
    channels: createChannels(db),
  };
}

function createClaims(db: Kysely<LedgerTables>, now: () => number): Claims {
  const find = together(createFindAll(db), { most: 64, anyNumber: true });
  return {
    ...createOperatorChanges(db, now),
    claim: createClaim(db, now),
    claimNothing: createClaimNothing(db, now),
    find: (id) => find(lowerCase(id)),
    list: createList(db),
    findIdentifier: createFindIdentifier(db, now),
    redrive: createRedrive(db, now),
    addAttempt: createAddAttempt(db),
    openAttempts: createOpenAttempts(db),
    introduceOperator: (chainId, address, txNonce) =>
      introduceSender(db, { chainId, address }, txNonce, { movesUp: false }),
    nextTxNonce: (chainId, address) => readNextTxNonce(db, { chainId, address }),
  };
}

function createOutcomes(db: Kysely<LedgerTables>, now: () => number): Outcomes {
  return {
    conclude: createConclude(db, now),
    concludedSettles: createConcludedSettles(db),
    reopenSettles: createReopenSettles(db),
    fillTxNonce: createFillTxNonce(db, now),
    gasSpending: createGasSpending(db, now),
    recentSettles: createRecentSettles(db),
    hasPaidLast: createHasPaidLast(db),

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

    async networks() {
      type Row = { network: NetworkName; chain_id: number };
      // Skips through the index from one chain id to the next: there are few chains, but maybe millions of settlements.
      const { rows } = await sql<Row>`
        WITH RECURSIVE chains(chain_id) AS (
          SELECT MIN(chain_id) FROM settlements
          UNION ALL
          SELECT (SELECT MIN(chain_id) FROM settlements WHERE settlements.chain_id > chains.chain_id)
          FROM chains WHERE chains.chain_id IS NOT NULL
        )
        SELECT chain_id,
          (SELECT network FROM settlements WHERE settlements.chain_id = chains.chain_id LIMIT 1) AS network
        FROM chains WHERE chain_id IS NOT NULL
      `.execute(db);
      return rows.map(({ network, chain_id: chainId }) => ({ network, chainId }));
    },

    async unfinished() {
      const rows = await db
        .selectFrom("settlements")
        .select(({ fn }) => [
          "network",
          fn.countAll<number | bigint | string>().as("count"),
          fn.min<number | bigint | string>("claimed_at").as("oldest"),
        ])
        // A literal, because a bound parameter would not match the partial index.
        .where("state", "=", sql.lit("submitted" as const))
        .groupBy("network")
        .execute();
      return rows.map(({ network, count, oldest }) => ({
        network,
        count: Number(count),
        oldestClaimedAt: Number(oldest),
      }));
    },
  };
}

function createAllLeases(db: Kysely<LedgerTables>, options: LeaseOptions): Leases {
  const retryQueue = createRetryQueue();
  const undelivered = createUndelivered(retryQueue);
  return {
    ...createLeases(db, retryQueue, undelivered, options),
    ...createIdempotency(db, retryQueue, undelivered, options),
    retryWrites: retryQueue.drain,
    finishWrites: retryQueue.finish,
  };
}

function createRecoveries(db: Kysely<LedgerTables>, now: () => number): Recoveries {
  return {
    ...createFailureLooks(db, now),
    ...createFailureQueue(db, now),
    ...createForwards(db, now),
    openForwards: createOpenForwards(db),
    concludedForwards: createConcludedForwards(db),
    reopenForwards: createReopenForwards(db),

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

/** The operator of rows without a transaction; it sends nothing. */
const nobody: Address = `0x${"00".repeat(20)}`;

/** Implements {@link Claims.claimNothing}. */
function createClaimNothing(db: Kysely<LedgerTables>, now: () => number): Claims["claimNothing"] {
  return (claim, checkedAt, charge, settledBy) =>
    inTransaction(db, async (transaction) => {
      const time = now();
      const row = fromSettlement({
        ...claim,
        state: "settled",
        operator: nobody,
        txNonce: -1,
        transactionHash: settledBy?.hash ?? noTransaction,
        blockNumber: settledBy?.blockNumber ?? null,
        blockHash: settledBy?.blockHash ?? null,
        failure: null,
        claimedBlock: checkedAt,
        claimedAt: time,
        concludedAt: time,
        deliveredAt: null,
      });
      const request = { ...claim, balance: 0n, balanceBlock: checkedAt };
      if (claim.channels !== undefined) {
        // The same lock as for other deposits, so that only one of them can be the first of its channel.
        await lockingAccounts(transaction, [request], time).execute();
        if ((await findForeign(transaction, claim.chainId, [claim])).size > 0) return "taken";
      }
      const written = await transaction
        .insertInto("settlements")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .returning("id")
        .executeTakeFirst();
      if (written === undefined) return "taken";
      const reused = await bindIdentifiers(transaction, {
        requests: [request],
        outcomes: ["claimed"],
        time,
      });
      if (reused.length === 0) {
        for (const kept of keepingChannels(transaction, [claim], time)) await kept.execute();
        const { organization_id, network } = row;
        const spent = { organization_id, network, gwei: toGwei(charge), gwei_with_code: 0 };
        await addingToSpending(transaction, [spent], time).execute();
        return "claimed";
      }
      // Undone, because its identifier belongs to another payment.
      await transaction.deleteFrom("settlements").where("id", "=", written.id).execute();
      return "identifier_reused";
    });
}
