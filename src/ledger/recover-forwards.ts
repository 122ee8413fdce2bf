import type { Kysely, Transaction } from "kysely";
import { repeatable } from "../database/retrying.ts";
import { inSnapshot, inTransaction } from "../database/transaction.ts";
import type { Address } from "../protocol/hex.ts";
import { takeTxNonce } from "./claim.ts";
import { closeTxNonce } from "./close-tx-nonce.ts";
import { lockOperator } from "./locks.ts";
import type { Recoveries } from "./recoveries.ts";
import { fromAttempt, lowerCase, toAttempt, toSafeInteger, toSettlement } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";

/** A txNonce of a recoverer. */
type TxNonce = { chainId: number; recoverer: Address; txNonce: number };

/** Makes the part of {@link Recoveries} that keeps the recoverers' transactions. */
export function createForwards(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<
  Recoveries,
  "introduceRecoverer" | "sendForward" | "openForwards" | "concludeForward" | "requeueForward"
> {
  return {
    async introduceRecoverer(chainId, recoverer, minedTransactions) {
      await repeatable(() =>
        db
          .insertInto("operator_nonces")
          .values({ chain_id: chainId, operator: lowerCase(recoverer), next_tx_nonce: minedTransactions })
          .onConflict((conflict) =>
            conflict
              .columns(["chain_id", "operator"])
              .doUpdateSet({ next_tx_nonce: minedTransactions })
              .where("operator_nonces.next_tx_nonce", "<", minedTransactions),
          )
          .execute(),
      );
    },

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
          await giveBackTxNonce(transaction, { chainId, recoverer: address, txNonce });
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

    openForwards: (chainId, recoverer) =>
      inSnapshot(db, async (transaction) => {
        const open = await transaction
          .selectFrom("attempts")
          .selectAll()
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(recoverer))
          .where("state", "=", "open")
          .where("kind", "=", "forward")
          .orderBy("tx_nonce")
          .orderBy("created_at")
          .execute();
        if (open.length === 0) return [];
        const paidOut = await transaction
          .selectFrom("settlements")
          .innerJoin("recoveries", "recoveries.id", "settlements.id")
          .selectAll("settlements")
          .select("recoveries.tx_nonce as forward_tx_nonce")
          .where("recoveries.chain_id", "=", chainId)
          .where("recoveries.recoverer", "=", lowerCase(recoverer))
          .where("recoveries.state", "=", "sent")
          .execute();
        return open.map((row) => ({
          attempt: toAttempt(row),
          settlements: paidOut
            .filter(({ forward_tx_nonce }) => forward_tx_nonce === row.tx_nonce)
            .map(toSettlement),
        }));
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

/** Undoes `takeTxNonce` within the same transaction, so that nobody has seen the txNonce taken. */
async function giveBackTxNonce(
  transaction: Transaction<LedgerTables>,
  { chainId, recoverer, txNonce }: TxNonce,
): Promise<void> {
  await transaction
    .updateTable("operator_nonces")
    .set({ next_tx_nonce: txNonce })
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(recoverer))
    .execute();
}
