import { type Kysely, sql, type Transaction } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { inSnapshot, inTransaction, repeatable } from "./database/transactions.ts";
import type { FailedSettlement, MinedForward, Recoveries, Recovery } from "./recoveries.ts";
import {
  fromAttempt,
  type LedgerTables,
  lowerCase,
  type RecoveriesTable,
  type SettlementsTable,
  toAttempt,
  toSafeInteger,
  toSettlement,
} from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import { closeTxNonce, giveBackTxNonce, introduceSender, lockOperator, takeTxNonce } from "./tx-nonces.ts";

/** A literal, because a bound parameter would not match the partial index on failures. */
const failed = sql.lit("failed" as const);

/** Implements the checks of failures among {@link Recoveries}. */
export function createFailureLooks(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Recoveries, "findFailure" | "takeDueFailures" | "openFailures" | "noteLook"> {
  return {
    findFailure: (id) =>
      inSnapshot(db, async (transaction) => {
        const rows = await transaction
          .selectFrom("settlements")
          .selectAll()
          .where("id", "=", lowerCase(id))
          .where("state", "=", failed)
          .execute();
        const [failure] = await withRecoveries(transaction, rows);
        return failure ?? null;
      }),

    takeDueFailures: (chainId, limit, nextLookAt) =>
      inTransaction(db, async (transaction) => {
        const time = now();
        const due = await transaction
          .updateTable("settlements")
          .set({ next_look_at: nextLookAt })
          .where("id", "in", (settlements) =>
            settlements
              .selectFrom("settlements")
              .select("id")
              .where("chain_id", "=", chainId)
              .where("state", "=", failed)
              .where("next_look_at", "<=", time)
              .orderBy("next_look_at")
              .limit(limit),
          )
          // Repeated, because another instance may have taken rows between the search and the update.
          .where("next_look_at", "<=", time)
          .returningAll()
          .execute();
        return withRecoveries(transaction, due);
      }),

    openFailures: (chainId, limit, after) =>
      inSnapshot(db, async (transaction) => {
        const rows = await transaction
          .selectFrom("settlements")
          .selectAll()
          .where("chain_id", "=", chainId)
          .where("state", "=", failed)
          .where("id", ">", after === null ? "0x" : lowerCase(after))
          .where(({ eb, or, selectFrom }) =>
            or([
              eb("next_look_at", "is not", null),
              eb(
                "id",
                "in",
                selectFrom("recoveries")
                  .select("id")
                  .where("chain_id", "=", chainId)
                  .where("state", "=", "sent"),
              ),
            ]),
          )
          .orderBy("id")
          .limit(limit)
          .execute();
        return withRecoveries(transaction, rows);
      }),

    async noteLook(id, { usedByBlock, nextLookAt }) {
      await repeatable(() =>
        db
          .updateTable("settlements")
          .set({
            used_by_block: usedByBlock === null ? null : toSafeInteger(usedByBlock),
            next_look_at: nextLookAt,
          })
          .where("id", "=", lowerCase(id))
          .where("state", "=", failed)
          .where(notSent(lowerCase(id)))
          .execute(),
      );
    },
  };
}

/** Implements the queue of failures among {@link Recoveries}. */
export function createFailureQueue(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Recoveries, "queueRecovery" | "correctFailure" | "dropRecovery" | "postponeRecovery"> {
  return {
    queueRecovery: (id, { transactionHash, logIndex, blockNumber }) =>
      inTransaction(db, async (transaction) => {
        const settlement = await transaction
          .selectFrom("settlements")
          .select(["id", "chain_id"])
          .where("id", "=", lowerCase(id))
          .where("state", "=", failed)
          .executeTakeFirst();
        if (settlement === undefined) return;
        const proof = {
          proof_hash: lowerCase(transactionHash),
          proof_log_index: logIndex,
          proof_block: toSafeInteger(blockNumber),
        };
        const other = await transaction
          .selectFrom("recoveries")
          .select("id")
          .where("chain_id", "=", settlement.chain_id)
          .where("proof_hash", "=", proof.proof_hash)
          .where("proof_log_index", "=", logIndex)
          .where("id", "!=", settlement.id)
          .executeTakeFirst();
        if (other !== undefined) {
          throw new KitError(`Log ${logIndex} of ${transactionHash} proves settlement ${other.id} already`);
        }
        await transaction
          .insertInto("recoveries")
          .values({
            ...settlement,
            ...proof,
            state: "queued",
            recoverer: null,
            tx_nonce: null,
            problem: null,
            queued_at: now(),
          })
          .onConflict((conflict) =>
            conflict.column("id").doUpdateSet(proof).where("recoveries.state", "=", "queued"),
          )
          .execute();
      }),

    correctFailure: (id, state, mined) =>
      inTransaction(db, async (transaction) => {
        const corrected = await transaction
          .updateTable("settlements")
          .set({ state, ...paidIn(mined, now()) })
          .where("id", "=", lowerCase(id))
          .where("state", "=", failed)
          .where(notSent(lowerCase(id)))
          .returning("id")
          .executeTakeFirst();
        if (corrected === undefined) return false;
        if (state === "settled") {
          await transaction.deleteFrom("recoveries").where("id", "=", corrected.id).execute();
        } else {
          await transaction
            .updateTable("recoveries")
            .set({ state: "forwarded", problem: null })
            .where("id", "=", corrected.id)
            .execute();
        }
        return true;
      }),

    async dropRecovery(id) {
      await repeatable(() =>
        db.deleteFrom("recoveries").where("id", "=", lowerCase(id)).where("state", "=", "queued").execute(),
      );
    },

    postponeRecovery: (id, problem, nextLookAt) =>
      inTransaction(db, async (transaction) => {
        const queued = await transaction
          .updateTable("recoveries")
          .set({ problem })
          .where("id", "=", lowerCase(id))
          .where("state", "=", "queued")
          .returning("id")
          .executeTakeFirst();
        if (queued === undefined) return;
        await transaction
          .updateTable("settlements")
          .set({ next_look_at: nextLookAt })
          .where("id", "=", queued.id)
          .where("state", "=", failed)
          .execute();
      }),
  };
}

/** Excludes sent recoveries: their receipt is watched, and a check that began earlier must not cause another forward. */
function notSent(id: Hex) {
  return sql<boolean>`not exists (select 1 from recoveries where id = ${id} and state = 'sent')`;
}

async function withRecoveries(
  transaction: Transaction<LedgerTables>,
  rows: readonly SettlementsTable[],
): Promise<FailedSettlement[]> {
  if (rows.length === 0) return [];
  const recoveries = await transaction
    .selectFrom("recoveries")
    .selectAll()
    .where("id", "in", idsOf(rows))
    .execute();
  const byId = new Map(recoveries.map((row) => [row.id, toRecovery(row)]));
  return rows.map((row) => ({
    settlement: toSettlement(row),
    usedByBlock: row.used_by_block === null ? null : BigInt(row.used_by_block),
    nextLookAt: row.next_look_at,
    recovery: byId.get(row.id) ?? null,
  }));
}

function idsOf(rows: readonly { id: Hex }[]): Hex[] {
  return rows.map(({ id }) => id);
}

function toRecovery(row: RecoveriesTable): Recovery {
  return {
    proof: {
      transactionHash: row.proof_hash,
      logIndex: row.proof_log_index,
      blockNumber: BigInt(row.proof_block),
    },
    state: row.state,
    recoverer: row.recoverer,
    txNonce: row.tx_nonce,
    problem: row.problem,
    queuedAt: row.queued_at,
  };
}

/** Implements the transactions of recoverers among {@link Recoveries}. */
export function createForwards(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Recoveries, "introduceRecoverer" | "sendForward" | "concludeForward" | "requeueForward"> {
  return {
    introduceRecoverer: (chainId, address, minedTransactions) =>
      introduceSender(db, { chainId, address }, minedTransactions, { movesUp: true }),

    sendForward: ({ chainId, address }, id, sign) =>
      inTransaction(db, async (transaction) => {
        // Comes first, because it blocks other instances that send with this recoverer.
        const txNonce = await takeTxNonce(transaction, { chainId, address });
        const queued = await transaction
          .updateTable("recoveries")
          .set({ state: "sent", recoverer: lowerCase(address), tx_nonce: txNonce, problem: null })
          .where("id", "=", lowerCase(id))
          .where("chain_id", "=", chainId)
          .where("state", "=", "queued")
          .returning("id")
          .executeTakeFirst();
        if (queued === undefined) {
          await giveBackTxNonce(transaction, { chainId, address }, txNonce);
          return null;
        }
        const settlement = await transaction
          .updateTable("settlements")
          .set({ next_look_at: null })
          .where("id", "=", queued.id)
          .returningAll()
          .executeTakeFirstOrThrow();
        const signed = await sign(txNonce);
        const attempt: Attempt = {
          ...signed,
          chainId,
          operator: address,
          txNonce,
          kind: "forward",
          createdAt: now(),
        };
        const row = fromAttempt(attempt);
        await transaction.insertInto("attempts").values(row).execute();
        return { attempt: toAttempt(row), settlements: [toSettlement(settlement)] };
      }),

    concludeForward: (mined, id) =>
      inTransaction(db, async (transaction) => {
        const { recoverer, txNonce, chainId, hash } = mined;
        await lockOperator(transaction, { chainId, operator: recoverer });
        const forwarded = await transaction
          .updateTable("recoveries")
          .set({ state: "forwarded" })
          .where("id", "=", lowerCase(id))
          .where("chain_id", "=", chainId)
          .where("recoverer", "=", lowerCase(recoverer))
          .where("tx_nonce", "=", txNonce)
          .where("state", "=", "sent")
          .returning("id")
          .executeTakeFirst();
        if (forwarded !== undefined) {
          await transaction
            .updateTable("settlements")
            .set({ state: "recovered", ...paidIn(mined, now()) })
            .where("id", "=", forwarded.id)
            .execute();
        }
        await closeTxNonce(transaction, { chainId, operator: recoverer, txNonce }, hash);
      }),

    requeueForward: (ended, id, problem, nextLookAt) =>
      inTransaction(db, async (transaction) => {
        await lockOperator(transaction, { chainId: ended.chainId, operator: ended.recoverer });
        const requeued = await transaction
          .updateTable("recoveries")
          .set({ state: "queued", problem })
          .where("id", "=", lowerCase(id))
          .where("chain_id", "=", ended.chainId)
          .where("recoverer", "=", lowerCase(ended.recoverer))
          .where("tx_nonce", "=", ended.txNonce)
          .where("state", "=", "sent")
          .returning("id")
          .executeTakeFirst();
        if (requeued !== undefined) {
          await transaction
            .updateTable("settlements")
            .set({ next_look_at: nextLookAt })
            .where("id", "=", requeued.id)
            .execute();
        }
        await closeTxNonce(transaction, { ...ended, operator: ended.recoverer }, ended.hash);
      }),
  };
}

/** The columns of a failed settlement that a mined transaction has paid after all. */
function paidIn(
  { hash, blockNumber, blockHash }: Pick<MinedForward, "hash" | "blockNumber" | "blockHash">,
  time: number,
) {
  return {
    failure: null,
    transaction_hash: lowerCase(hash),
    block_number: toSafeInteger(blockNumber),
    block_hash: lowerCase(blockHash),
    concluded_at: time,
    next_look_at: null,
  };
}
