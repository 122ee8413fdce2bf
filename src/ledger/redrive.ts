import type { Kysely } from "kysely";
import { inTransaction } from "./database/transactions.ts";
import type { Claims } from "./ledger.ts";
import { lockOperator } from "./locks.ts";
import { fromAttempt, lowerCase, toAttempt, toSettlement } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";
import { closeTxNonce, takeTxNonce } from "./tx-nonces.ts";

/** Makes {@link Claims.redrive}. */
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
