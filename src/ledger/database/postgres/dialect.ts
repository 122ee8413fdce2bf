import { type Dialect, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { createDialect, type StatementResult } from "../dialect.ts";
import { UnansweredError, UndoneError, untilDone } from "../retrying.ts";
import { createCommitMarks } from "./commits.ts";
import { LostConnectionError, type PostgresConnections } from "./connection.ts";
import { beginPostgresTransaction } from "./transaction.ts";

/** How long the answer to a statement may take, in milliseconds. */
const statementTimeoutMs = 10_000;
/** The same for an urgent one, which is tried again on a new connection: most of a lease must be left by then. */
const urgentTimeoutMs = 3_000;

/**
 * Kysely's dialect for Postgres by `pg`. Beside what Kysely's own has it
 * - keeps nothing in a session, so that a pooler in between may give every transaction another one: no advisory locks,
 *   no named statements, and settings by SET LOCAL alone;
 * - says of a failure whether the work has happened: see retrying.ts;
 * - looks a commit up whose answer was lost.
 *
 * It owns the connections: destroying the Kysely instance closes them. Those for urgent statements are apart: in a network
 * that swallows packets, all others are waited for, and those who wait for a turn with them wait several times as long.
 */
export function createPostgresDialect(
  connections: PostgresConnections,
  urgentConnections: PostgresConnections,
): Dialect {
  const marks = createCommitMarks(connections);

  /** Runs a statement once. One that only reads may be repeated when its connection was lost. */
  async function runOnce(
    sql: string,
    parameters: readonly unknown[],
    { from, timeoutMs, readsOnly }: { from: PostgresConnections; timeoutMs: number; readsOnly: boolean },
  ): Promise<StatementResult> {
    const connection = await from.take();
    try {
      return await connection.run(sql, parameters, timeoutMs);
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
      run: (sql, parameters, readsOnly) =>
        untilDone(() =>
          runOnce(sql, parameters, { from: connections, timeoutMs: statementTimeoutMs, readsOnly }),
        ),
      runUrgently: (sql, parameters) =>
        runOnce(sql, parameters, { from: urgentConnections, timeoutMs: urgentTimeoutMs, readsOnly: false }),
      begin: (settings) => beginPostgresTransaction(connections, marks, settings),
      async close() {
        await Promise.all([connections.close(), urgentConnections.close()]);
      },
    },
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (db) => new PostgresIntrospector(db),
  });
}
