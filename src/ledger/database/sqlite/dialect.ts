import type { DatabaseSync } from "node:sqlite";
import { type Dialect, type SelectModifierNode, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { createDialect } from "../dialect.ts";
import { createSqliteReaders } from "./readers.ts";
import { createSqliteSession } from "./session.ts";

/**
 * Kysely's dialect for `node:sqlite`, over a connection that it owns and that does all writing. `openReader` opens
 * connections that only read; without it, as for a database in memory, reads take turns with the writing.
 */
export function createSqliteDialect(database: DatabaseSync, openReader?: () => DatabaseSync): Dialect {
  const session = createSqliteSession(database);
  const readers = openReader === undefined ? null : createSqliteReaders(openReader);
  return createDialect({
    engine: {
      run: (sql, parameters, readsOnly) =>
        readsOnly && readers !== null
          ? readers.run(sql, parameters)
          : session.run(sql, parameters, readsOnly),
      runUrgently: (sql, parameters) => session.run(sql, parameters, false),
      // The isolation level is not looked at: transactions that write run one at a time.
      begin: ({ accessMode }) =>
        accessMode === "read only" && readers !== null ? readers.begin() : session.begin(),
      async close() {
        readers?.close();
        await session.close();
      },
    },
    createQueryCompiler: () => new QueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  });
}

const locking: ReadonlySet<SelectModifierNode["modifier"]> = new Set([
  "ForUpdate",
  "ForKeyShare",
  "SkipLocked",
]);

/** SQLite has one writer at a time: where others lock rows, it has nothing to lock, and no words for it. */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (!locking.has(node.modifier)) super.visitSelectModifier(node);
  }
}
