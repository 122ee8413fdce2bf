import type { Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import type { ClaimRequest } from "./ledger.ts";
import { type LedgerTables, lowerCase } from "./rows.ts";
import { attemptsOf } from "./tx-nonces.ts";

/*
 * Rows that stand for a decision. A transaction that decides locks the row first; from then on every other one that
 * does the same waits until this one has ended, and then sees what it has done. Locked in this order: first the
 * operator, then the accounts, or the attempts of a txNonce.
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
  operator: { chainId: number; operator: Address },
) {
  return selectingOperator(transaction, operator).forUpdate();
}

/**
 * The statements that lock txNonces of an operator which are to be concluded. Other txNonces may be concluded, and new
 * ones taken, meanwhile: an UPDATE that leaves the key alone, as the one which takes a txNonce, goes well with a KEY
 * SHARE. What locks the operator waits.
 */
export function lockingTxNonces(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
  txNonces: readonly number[],
) {
  return [
    selectingOperator(transaction, operator).forKeyShare(),
    attemptsOf(transaction, operator, txNonces).select("hash").forUpdate(),
  ];
}

function selectingOperator(
  transaction: Transaction<LedgerTables>,
  { chainId, operator }: { chainId: number; operator: Address },
) {
  return transaction
    .selectFrom("operator_nonces")
    .select("operator")
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
