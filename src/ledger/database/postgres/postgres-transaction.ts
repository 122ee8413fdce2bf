import type { TransactionSettings } from "kysely";
import { KitError, UndeterminedError } from "../../../util/errors.ts";
import { UndoneError } from "../transactions.ts";
import type { CommitMarks } from "./commits.ts";
import { LostConnectionError, type PostgresConnections, type PostgresResult } from "./postgres-connection.ts";

/**
 * A transaction under way. It ends with the first `commit` that resolves, or `rollback`. Statements that are run
 * without waiting for one another's answers take place in the order of asking, and so does the commit.
 */
export type PostgresTransaction = {
  /** @throws UndoneError when the connection was lost, or others were in the way: then nothing of it has happened. */
  run(sql: string, parameters: readonly unknown[]): Promise<PostgresResult>;
  /** @throws UndoneError when nothing of it has happened, UnansweredError when the database does not say. */
  commit(): Promise<void>;
  /** Does nothing to a transaction that has ended. */
  rollback(): Promise<void>;
};

/** Waiting for another's lock ends after this, in milliseconds, as it does on SQLite. */
const lockTimeoutMs = 10_000;
/** A statement ends after this. None of ours takes long but by waiting. */
const statementTimeoutMs = 15_000;
/** The server gives a transaction up whose owner has been silent for so long: its locks stop all others. */
const idleTimeoutMs = 30_000;
/** The server's answer is waited for a little longer than the server waits itself. */
const answerTimeoutMs = 20_000;

/**
 * Begins a transaction, with its settings in one message to the server. One that names its isolation level is ours and
 * short: it gets time limits. One that does not is a migration, which takes as long as it needs.
 *
 * @throws UndoneError when the database cannot be reached.
 */
export async function beginPostgresTransaction(
  connections: PostgresConnections,
  marks: CommitMarks,
  { isolationLevel, accessMode }: TransactionSettings,
): Promise<PostgresTransaction> {
  const connection = await connections.take();
  const timeoutMs = isolationLevel === undefined ? undefined : answerTimeoutMs;
  let ended = false;
  /** Statements that changed rows, or may have: they failed, or have no answer yet. */
  let changing = 0;

  async function run(sql: string, parameters: readonly unknown[]): Promise<PostgresResult> {
    if (ended) throw new KitError("The transaction has ended");
    try {
      changing++;
      const result = await connection.run(sql, parameters, timeoutMs);
      if (!result.changes) changing--;
      return result;
    } catch (error) {
      if (!(error instanceof LostConnectionError)) throw error;
      // The server undoes what was not committed.
      throw new UndoneError("The connection to the database was lost in a transaction", { cause: error });
    }
  }
  function end(): void {
    ended = true;
    connection.release();
  }

  /** Commits; gives the error when the connection was lost meanwhile and the outcome is unknown. */
  async function tryCommit(mark: string | undefined): Promise<LostConnectionError | undefined> {
    const statements = [...(mark === undefined ? [] : [marks.leave(mark)]), "commit"];
    try {
      const { command } = await connection.run(statements.join("; "), [], timeoutMs);
      // The server's answer to a commit after a statement whose failure was ignored.
      if (command === "ROLLBACK")
        throw new KitError("A statement of the transaction failed; nothing was kept");
      return undefined;
    } catch (error) {
      // After any other error the transaction is open still, and will be rolled back.
      if (error instanceof LostConnectionError) return error;
      throw error;
    }
  }

  try {
    await run(beginning(isolationLevel, accessMode), []);
  } catch (error) {
    end();
    throw error;
  }
  return {
    run,

    async commit() {
      if (ended) throw new KitError("The transaction has ended");
      const isMigration = isolationLevel === undefined;
      const mark = isMigration || changing === 0 ? undefined : marks.draw();
      const lost = await tryCommit(mark);
      end();
      if (lost === undefined) {
        marks.sweep();
      } else if (mark !== undefined) {
        await marks.findOut(mark, lost);
      } else if (isMigration) {
        throw new UndeterminedError("The connection to the database was lost at the commit", {
          cause: lost,
          hints: ["Whether it took place is unknown. It can safely be done again."],
        });
      } else {
        throw new UndoneError("The connection to the database was lost while reading", { cause: lost });
      }
    },

    async rollback() {
      if (ended) return;
      try {
        await run("rollback", []);
      } catch {
        // Then the connection is lost, and the server rolls back by itself.
      } finally {
        end();
      }
    },
  };
}

function beginning(
  isolationLevel: TransactionSettings["isolationLevel"],
  accessMode: TransactionSettings["accessMode"],
): string {
  if (isolationLevel === undefined) return "start transaction";
  return [
    `start transaction isolation level ${isolationLevel}${accessMode === undefined ? "" : `, ${accessMode}`}`,
    `set local lock_timeout = ${lockTimeoutMs}`,
    `set local statement_timeout = ${statementTimeoutMs}`,
    `set local idle_in_transaction_session_timeout = ${idleTimeoutMs}`,
  ].join("; ");
}
