import type { Kysely } from "kysely";
import { inTransaction } from "./database/transactions.ts";
import { lockOperator } from "./locks.ts";
import type { Recoveries } from "./recoveries.ts";
import { fromAttempt, lowerCase, toAttempt, toSafeInteger, toSettlement } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";
import { closeTxNonce, giveBackTxNonce, introduceSender, takeTxNonce } from "./tx-nonces.ts";

/** Makes the part of {@link Recoveries} that stores the recoverers' transactions. */
export function createForwards(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Recoveries, "introduceRecoverer" | "sendForward" | "concludeForward" | "requeueForward"> {
  return {
    introduceRecoverer: (chainId, address, minedTransactions) =>
      introduceSender(db, { chainId, address }, minedTransactions, { movesUp: true }),

    sendForward: ({ chainId, address }, id, sign) =>
      inTransaction(db, async (transaction) => {
        // First of all, since it makes other instances wait that send with this recoverer.
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
        const { recoverer, txNonce, chainId, hash, blockNumber, blockHash } = mined;
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
            .set({
              state: "recovered",
              failure: null,
              transaction_hash: lowerCase(hash),
              block_number: toSafeInteger(blockNumber),
              block_hash: lowerCase(blockHash),
              concluded_at: now(),
              next_look_at: null,
            })
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
