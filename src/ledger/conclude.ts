import type { Kysely } from "kysely";
import { inTransaction } from "../database/transaction.ts";
import { KitError } from "../errors.ts";
import type { Hex } from "../protocol/hex.ts";
import { chargeGas } from "./gas-spending.ts";
import type { Ledger } from "./ledger.ts";
import { lockOperator } from "./locks.ts";
import { lowerCase, toSafeInteger } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";
import { closeTxNonce } from "./tx-nonces.ts";

/** Makes {@link Ledger.conclude}. */
export function createConclude(db: Kysely<LedgerTables>, now: () => number): Ledger["conclude"] {
  return ({ chainId, operator, txNonce, hash, blockNumber, blockHash, gasCost }, conclusions) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, { chainId, operator });
      const inBatch = await transaction
        .selectFrom("settlements")
        .select(["id", "state", "organization_id", "network", "signature", "concluded_at"])
        .where("chain_id", "=", chainId)
        .where("operator", "=", lowerCase(operator))
        .where("tx_nonce", "=", txNonce)
        .execute();
      const states = new Map(inBatch.map(({ id, state }) => [id, state]));

      /** Ids by how they ended: `null` for settled, else the failure. Those already concluded stay as they are. */
      const endings = new Map<string | null, Hex[]>();
      for (const conclusion of conclusions) {
        const id = lowerCase(conclusion.id);
        const state = states.get(id);
        if (state === undefined) {
          throw new KitError(
            `The settlement ${id} is not in the transaction with txNonce ${txNonce} of ${operator}`,
          );
        }
        states.delete(id);
        if (state !== "submitted") continue;
        const failure = conclusion.state === "failed" ? conclusion.failure : null;
        const ids = endings.get(failure);
        if (ids === undefined) endings.set(failure, [id]);
        else ids.push(id);
      }
      for (const [id, state] of states) {
        // A closed txNonce is not watched any more: what is left out here would stay unfinished for ever.
        if (state === "submitted")
          throw new KitError(`The transaction ${hash} also decides settlement ${id}`);
      }

      if (gasCost !== undefined) {
        // What was concluded before, in a block that vanished, was charged then.
        const concluded = inBatch.filter(
          ({ state, concluded_at }) => state === "submitted" && concluded_at === null,
        );
        await chargeGas(transaction, concluded, gasCost, now());
      }
      for (const [failure, ids] of endings) {
        await transaction
          .updateTable("settlements")
          .set({
            state: failure === null ? "settled" : "failed",
            failure,
            transaction_hash: lowerCase(hash),
            block_number: toSafeInteger(blockNumber),
            block_hash: lowerCase(blockHash),
            concluded_at: now(),
          })
          .where("id", "in", ids)
          .execute();
      }
      await closeTxNonce(transaction, { chainId, operator, txNonce }, hash);
    });
}
