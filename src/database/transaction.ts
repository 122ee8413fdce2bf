import type { Kysely, Transaction } from "kysely";

/**
 * Runs `work` in one transaction that sees the database as if it were alone in it; commits when it resolves and
 * undoes everything when it throws. `work` must use the given transaction only: a query on the database itself
 * would wait for the end of the transaction, and so for ever.
 */
export function inTransaction<Tables, T>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return db.transaction().setIsolationLevel("serializable").execute(work);
}
