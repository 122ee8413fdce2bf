import type { Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import type { ClaimRequest } from "./ledger.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/*
 * Rows that stand for a decision. A transaction that decides updates the row first; from then on every other one that
 * does the same waits until this one has ended, and then sees what it has done. Locked in this order: first the
 * operator, then the accounts.
 */

/** Locks all that is known of an operator's txNonces: which are open, and their settlements. */
export async function lockOperator(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
): Promise<void> {
  await lockingOperator(transaction, operator).execute();
}

/** The statement of {@link lockOperator}. */
export function lockingOperator(
  transaction: Transaction<LedgerTables>,
  { chainId, operator }: { chainId: number; operator: Address },
) {
  return transaction
    .updateTable("operator_nonces")
    .set((row) => ({ next_tx_nonce: row.ref("next_tx_nonce") }))
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator));
}

/** The statement that locks what the balances of the requests' payers back, which other operators may claim from too. */
export function lockingAccounts(
  transaction: Transaction<LedgerTables>,
  requests: readonly ClaimRequest[],
  time: number,
) {
  const accounts = new Map(
    requests.map(({ chainId, asset, payer }) => {
      const row = { chain_id: chainId, asset: lowerCase(asset), payer: lowerCase(payer), claimed_at: time };
      return [`${row.asset} ${row.payer}`, row] as const;
    }),
  );
  // In one order everywhere: two transactions must not wait for each other.
  const inOrder = [...accounts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  return transaction
    .insertInto("accounts")
    .values(inOrder)
    .onConflict((conflict) =>
      conflict
        .columns(["chain_id", "asset", "payer"])
        .doUpdateSet({ claimed_at: (row) => row.ref("excluded.claimed_at") }),
    );
}
