import type { Kysely, Transaction } from "kysely";
import { inTransaction } from "../database/transaction.ts";
import type { Address } from "../protocol/hex.ts";
import type { ConcludedTransaction, Ledger } from "./ledger.ts";
import { lockOperator } from "./locks.ts";
import { fromAttempt, lowerCase, toAttempt } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";

/** What the organization reads while a settlement is undecided again. */
const vanished =
  "the block that held it vanished from the chain; it was sent again, and is undecided until mined";

/** Makes the part of {@link Ledger} that takes conclusions back whose block has vanished from the chain. */
export function createReopen(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<
  Ledger,
  "concludedSettles" | "concludedForwards" | "reopenSettles" | "reopenForwards" | "fillTxNonce"
> {
  return {
    async concludedSettles(chainId, operator, { from = 0, below, limit }) {
      let decided = db
        .selectFrom("settlements")
        .where("chain_id", "=", chainId)
        .where("operator", "=", lowerCase(operator))
        .where("tx_nonce", ">=", from)
        .where("state", "in", ["settled", "failed"])
        .where("block_hash", "is not", null)
        // As where they are reopened: what is being recovered would be found as vanished again and again.
        .where(({ not, exists, selectFrom }) =>
          not(exists(selectFrom("recoveries").select("id").whereRef("recoveries.id", "=", "settlements.id"))),
        );
      if (below !== undefined) decided = decided.where("tx_nonce", "<", below);
      const rows = await decided
        .select(({ fn }) => [
          "tx_nonce",
          "transaction_hash as hash",
          "block_number",
          "block_hash",
          fn.max("concluded_at").as("concluded_at"),
        ])
        // All of one txNonce, however many blocks decided them: a page that ended between them would lose the rest.
        .where(
          "tx_nonce",
          "in",
          decided.select("tx_nonce").distinct().orderBy("tx_nonce", "desc").limit(limit),
        )
        .groupBy(["tx_nonce", "transaction_hash", "block_number", "block_hash"])
        .orderBy("tx_nonce", "desc")
        .orderBy("block_number", "desc")
        .execute();
      return rows.flatMap(toConcluded);
    },

    async concludedForwards(chainId, recoverer, { from = 0, below, limit }) {
      let query = db
        .selectFrom("recoveries")
        .innerJoin("settlements", "settlements.id", "recoveries.id")
        .select([
          "recoveries.tx_nonce",
          "transaction_hash as hash",
          "block_number",
          "block_hash",
          "concluded_at",
        ])
        .where("recoveries.chain_id", "=", chainId)
        .where("recoveries.recoverer", "=", lowerCase(recoverer))
        .where("recoveries.state", "=", "forwarded")
        .where("recoveries.tx_nonce", ">=", from)
        .orderBy("recoveries.tx_nonce", "desc")
        .limit(limit);
      if (below !== undefined) query = query.where("recoveries.tx_nonce", "<", below);
      return (await query.execute()).flatMap(toConcluded);
    },

    reopenSettles: (chainId, operator, transactions) =>
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
            // Another instance may have seen it in its new block already.
            .where("block_hash", "=", lowerCase(blockHash))
            .where("state", "in", ["settled", "failed"])
            // What is being recovered was paid by another transaction: that one decides.
            .where("id", "not in", (rows) => rows.selectFrom("recoveries").select("id"))
            .returning("id")
            .executeTakeFirst();
          if (reopened !== undefined) await openAttempts(transaction, { chainId, operator, txNonce });
        }
      }),

    reopenForwards: (chainId, recoverer, transactions) =>
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
      }),

    fillTxNonce: ({ chainId, operator, txNonce }, sign) =>
      inTransaction(db, async (transaction) => {
        await lockOperator(transaction, { chainId, operator });
        const attempts = await transaction
          .selectFrom("attempts")
          .selectAll()
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .where("tx_nonce", "=", txNonce)
          .execute();
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
      }),
  };
}

/**
 * Whether a payment was decided by a transaction with this txNonce, as the ledger has it by now. Another instance may have
 * recorded that in a newer block since the chain was asked: a no-op there would take the payment's place when that block
 * vanishes as well.
 */
async function isDecided(
  transaction: Transaction<LedgerTables>,
  { chainId, operator, txNonce }: { chainId: number; operator: Address; txNonce: number },
): Promise<boolean> {
  const settled = await transaction
    .selectFrom("settlements")
    .select("id")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator))
    .where("tx_nonce", "=", txNonce)
    .where("state", "in", ["settled", "failed"])
    .where("block_hash", "is not", null)
    .where("id", "not in", (rows) => rows.selectFrom("recoveries").select("id"))
    .limit(1)
    .executeTakeFirst();
  if (settled !== undefined) return true;
  const forwarded = await transaction
    .selectFrom("recoveries")
    .select("id")
    .where("chain_id", "=", chainId)
    .where("recoverer", "=", lowerCase(operator))
    .where("tx_nonce", "=", txNonce)
    .where("state", "=", "forwarded")
    .limit(1)
    .executeTakeFirst();
  return forwarded !== undefined;
}

/** What was mined or superseded may be mined again. */
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

function toConcluded(row: {
  tx_nonce: number | null;
  hash: ConcludedTransaction["hash"];
  block_number: number | null;
  block_hash: ConcludedTransaction["blockHash"] | null;
  concluded_at: number | null;
}): ConcludedTransaction[] {
  const { tx_nonce: txNonce, hash, block_number, block_hash: blockHash, concluded_at } = row;
  if (txNonce === null || block_number === null || blockHash === null) return [];
  return [{ txNonce, hash, blockNumber: BigInt(block_number), blockHash, concludedAt: concluded_at ?? 0 }];
}
