import { type Dialect, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { createDialect, type StatementResult } from "../dialect.ts";
import { UnansweredError, UndoneError, untilDone } from "../retrying.ts";
import { createCommitMarks } from "./commits.ts";
import { LostConnectionError, type PostgresConnections } from "./connection.ts";
import { beginPostgresTransaction } from "./transaction.ts";

/** How long the answer to a statement may take, in milliseconds. */
const statementTimeoutMs = 10_000;

/**
 * Kysely's dialect for Postgres by `pg`. Beside what Kysely's own has it
 * - keeps nothing in a session, so that a pooler in between may give every transaction another one: no advisory locks,
 *   no named statements, and settings by SET LOCAL alone;
 * - says of a failure whether the work has happened: see retrying.ts;
 * - looks a commit up whose answer was lost.
 *
 * It owns the connections: destroying the Kysely instance closes them.
 */
export function createPostgresDialect(connections: PostgresConnections): Dialect {
  const marks = createCommitMarks(connections);

  /** Runs a statement once. One that only reads may be repeated when its connection was lost. */
  async function runOnce(
    sql: string,
    parameters: readonly unknown[],
    readsOnly: boolean,
  ): Promise<StatementResult> {
    const connection = await connections.take();
    try {
      return await connection.run(sql, parameters, statementTimeoutMs);
    } catch (error) {
      if (!(error instanceof LostConnectionError)) throw error;
      const Lost = readsOnly ? UndoneError : UnansweredError;
      throw new Lost("The database did not answer", { cause: error });
    } finally {
      connection.release();
    }
  }

  return createDialect({
    engine: {
      run: (sql, parameters, readsOnly) => untilDone(() => runOnce(sql, parameters, readsOnly)),
      begin: (settings) => beginPostgresTransaction(connections, marks, settings),
      close: connections.close,
    },
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (db) => new PostgresIntrospector(db),
  });
}
