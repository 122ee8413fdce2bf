import type { Kysely } from "kysely";
import { inTransaction } from "./database/transactions.ts";
import type { Claims } from "./ledger.ts";
import { lockOperator } from "./locks.ts";
import { fromAttempt } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";
import { attemptsOf } from "./tx-nonces.ts";

/** Makes {@link Claims.addAttempt}. */
export function createAddAttempt(db: Kysely<LedgerTables>): Claims["addAttempt"] {
  return (attempt) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, attempt);
      const row = fromAttempt(attempt);
      const open = await attemptsOf(transaction, attempt, [attempt.txNonce])
        .select("hash")
        .where("state", "=", "open")
        .executeTakeFirst();
      if (open === undefined) return false;
      // Another instance may have signed the same at the same time.
      await transaction
        .insertInto("attempts")
        .values(row)
        .onConflict((conflict) => conflict.column("hash").doNothing())
        .execute();
      // A no-op settles nothing: what waits for its settlement goes on knowing the hash that would.
      if (attempt.kind === "settle") {
        await transaction
          .updateTable("settlements")
          .set({ transaction_hash: row.hash })
          .where("chain_id", "=", row.chain_id)
          .where("operator", "=", row.operator)
          .where("tx_nonce", "=", row.tx_nonce)
          .where("state", "=", "submitted")
          .execute();
      }
      return true;
    });
}
