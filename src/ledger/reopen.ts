import type { Kysely, Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { createConcludedForwards, createConcludedSettles } from "./conclude.ts";
import { inTransaction } from "./database/transactions.ts";
import type { Claims, Outcomes } from "./ledger.ts";
import type { Recoveries } from "./recoveries.ts";
import { fromAttempt, type LedgerTables, lowerCase, toAttempt, toSettlement } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import { attemptsOf, closeTxNonce, lockOperator, takeTxNonce } from "./tx-nonces.ts";

/** The failure shown while a settlement is undecided again. */
const vanished =
  "the block that held it vanished from the chain; it was sent again, and is undecided until mined";

/*
 * Undoes conclusions whose block has vanished from the chain.
 */

/** Implements {@link Outcomes.reopenSettles}. */
export function createReopenSettles(db: Kysely<LedgerTables>): Outcomes["reopenSettles"] {
  return (chainId, operator, transactions) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, { chainId, operator });
      for (const { txNonce, blockHash } of transactions) {
        const reopened = await transaction
          .updateTable("settlements")
          .set({
            state: "submitted",
            failure: vanished,
            block_number: null,
            block_hash: null,
            next_look_at: 0,
          })
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .where("tx_nonce", "=", txNonce)
          // Another instance may already have seen it in its new block.
          .where("block_hash", "=", lowerCase(blockHash))
          .where("state", "in", ["settled", "failed"])
          // A settlement being recovered was paid by another transaction, which decides it.
          .where("id", "not in", (rows) => rows.selectFrom("recoveries").select("id"))
          .returning("id")
          .executeTakeFirst();
        if (reopened !== undefined) await openAttempts(transaction, { chainId, operator, txNonce });
      }
    });
}

/** Implements {@link Recoveries.reopenForwards}. */
export function createReopenForwards(db: Kysely<LedgerTables>): Recoveries["reopenForwards"] {
  return (chainId, recoverer, transactions) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, { chainId, operator: recoverer });
      for (const { txNonce, blockHash } of transactions) {
        const reopened = await transaction
          .updateTable("settlements")
          .set({ state: "failed", failure: vanished, block_number: null, block_hash: null })
          .where("block_hash", "=", lowerCase(blockHash))
          .where("state", "=", "recovered")
          .where("id", "in", (rows) =>
            rows
              .selectFrom("recoveries")
              .select("id")
              .where("chain_id", "=", chainId)
              .where("recoverer", "=", lowerCase(recoverer))
              .where("tx_nonce", "=", txNonce)
              .where("state", "=", "forwarded"),
          )
          .returning("id")
          .executeTakeFirst();
        if (reopened === undefined) continue;
        await transaction
          .updateTable("recoveries")
          .set({ state: "sent" })
          .where("id", "=", reopened.id)
          .execute();
        await openAttempts(transaction, { chainId, operator: recoverer, txNonce });
      }
    });
}

/** Implements {@link Outcomes.fillTxNonce}. */
export function createFillTxNonce(db: Kysely<LedgerTables>, now: () => number): Outcomes["fillTxNonce"] {
  return ({ chainId, operator, txNonce }, sign) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, { chainId, operator });
      const attempts = await attemptsOf(transaction, { chainId, operator }, [txNonce]).selectAll().execute();
      if (attempts.some(({ state }) => state === "open")) return null;
      if (await isDecided(transaction, { chainId, operator, txNonce })) return null;
      const stored = attempts.find(({ kind }) => kind === "noop");
      if (stored !== undefined) {
        await transaction
          .updateTable("attempts")
          .set({ state: "open" })
          .where("hash", "=", stored.hash)
          .execute();
        return { attempt: toAttempt(stored), settlements: [] };
      }
      const signed = await sign();
      const attempt: Attempt = { ...signed, chainId, operator, txNonce, kind: "noop", createdAt: now() };
      const row = fromAttempt(attempt);
      await transaction.insertInto("attempts").values(row).execute();
      return { attempt: toAttempt(row), settlements: [] };
    });
}

/**
 * Returns true if the ledger by now has a payment decided by a transaction with this txNonce. Another instance may
 * have recorded that in a newer block since the chain was read; a no-op would take the payment's txNonce if that block
 * vanishes as well.
 */
async function isDecided(
  transaction: Transaction<LedgerTables>,
  { chainId, operator, txNonce }: { chainId: number; operator: Address; txNonce: number },
): Promise<boolean> {
  const range = { from: txNonce, below: txNonce + 1, limit: 1 };
  const settles = await createConcludedSettles(transaction)(chainId, operator, range);
  const forwards = await createConcludedForwards(transaction)(chainId, operator, range);
  return [...settles, ...forwards].some(({ hasThisTxNonce }) => hasThisTxNonce);
}

/** Reopens mined or superseded attempts, which may be mined again. */
async function openAttempts(
  transaction: Transaction<LedgerTables>,
  { chainId, operator, txNonce }: { chainId: number; operator: Address; txNonce: number },
): Promise<void> {
  await transaction
    .updateTable("attempts")
    .set({ state: "open" })
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator))
    .where("tx_nonce", "=", txNonce)
    .execute();
}

/** Implements {@link Claims.redrive}. */
export function createRedrive(db: Kysely<LedgerTables>, now: () => number): Claims["redrive"] {
  return ({ chainId, operator, txNonce: oldTxNonce, mined }, ids, sign) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, { chainId, operator });
      const inBatch = await transaction
        .selectFrom("settlements")
        .selectAll()
        .where("chain_id", "=", chainId)
        .where("operator", "=", lowerCase(operator))
        .where("tx_nonce", "=", oldTxNonce)
        .where("state", "=", "submitted")
        .execute();
      const moving = new Set(ids.map(lowerCase));
      const rows = inBatch.filter(({ id }) => moving.has(id));
      if (rows.length === inBatch.length) {
        await closeTxNonce(transaction, { chainId, operator, txNonce: oldTxNonce }, mined);
      }
      if (rows.length === 0) return null;
      const unfinished = rows.map(toSettlement);
      const txNonce = await takeTxNonce(transaction, { chainId, address: operator });
      const signed = await sign(txNonce, unfinished);
      const attempt: Attempt = { ...signed, chainId, operator, txNonce, kind: "settle", createdAt: now() };
      const row = fromAttempt(attempt);
      await transaction.insertInto("attempts").values(row).execute();
      await transaction
        .updateTable("settlements")
        .set({ tx_nonce: txNonce, transaction_hash: row.hash, block_number: null })
        .where(
          "id",
          "in",
          rows.map(({ id }) => id),
        )
        .execute();
      const settlements = unfinished.map((settlement) => ({
        ...settlement,
        txNonce,
        transactionHash: row.hash,
        blockNumber: null,
      }));
      return { attempt: toAttempt(row), settlements };
    });
}
