import type { Transaction } from "kysely";
import type { Database, Schema } from "./schema.ts";

/**
 * Runs `work` in one transaction that sees the database as if it were alone in it; commits when it resolves and
 * undoes everything when it throws. `work` must use the given transaction only: a query on the database itself
 * would wait for the end of the transaction, and so for ever.
 */
export function inTransaction<T>(
  database: Database,
  work: (transaction: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return database.transaction().setIsolationLevel("serializable").execute(work);
}
