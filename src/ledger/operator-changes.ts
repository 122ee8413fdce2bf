import type { Kysely } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { inTransaction } from "./database/transactions.ts";
import type { Claims } from "./ledger.ts";
import { lockOperator } from "./locks.ts";
import { type LedgerTables, lowerCase } from "./rows.ts";

/** Makes the part of {@link Claims} that people change by hand. */
export function createOperatorChanges(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Claims, "acceptTxNonce" | "operatorChanges"> {
  const ofOperator = (chainId: number, operator: Address) =>
    db
      .selectFrom("operator_changes")
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(operator));

  return {
    acceptTxNonce: ({ chainId, operator, txNonce }, actor) =>
      inTransaction(db, async (transaction) => {
        await lockOperator(transaction, { chainId, operator });
        const row = await transaction
          .selectFrom("operator_nonces")
          .select("next_tx_nonce")
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .executeTakeFirst();
        if (row === undefined || row.next_tx_nonce >= txNonce) return false;
        await transaction
          .updateTable("operator_nonces")
          .set({ next_tx_nonce: txNonce })
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .execute();
        await transaction
          .insertInto("operator_changes")
          .values({
            chain_id: chainId,
            operator: lowerCase(operator),
            at: now(),
            actor,
            from_tx_nonce: row.next_tx_nonce,
            to_tx_nonce: txNonce,
          })
          .execute();
        return true;
      }),

    async operatorChanges(chainId, operator) {
      const rows = await ofOperator(chainId, operator)
        .select(["at", "actor", "from_tx_nonce", "to_tx_nonce"])
        .orderBy("to_tx_nonce")
        .execute();
      return rows.map(({ at, actor, from_tx_nonce, to_tx_nonce }) => ({
        at,
        actor,
        from: from_tx_nonce,
        to: to_tx_nonce,
      }));
    },
  };
}
