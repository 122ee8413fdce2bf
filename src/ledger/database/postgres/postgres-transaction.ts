import { randomBytes } from "node:crypto";
// Imported, not global, so that a test with fake timers does not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import type { TransactionSettings } from "kysely";
import { KitError, UndeterminedError } from "../../../util/errors.ts";
import { UnansweredError, UndoneError } from "../transactions.ts";
import { statementTime } from "./postgres-clock.ts";
import { LostConnectionError, type PostgresConnections, type PostgresResult } from "./postgres-connection.ts";

/**
 * An open transaction. It ends with the first `commit` that resolves, or `rollback`. Statements and the commit run in
 * the order they were requested, even if nobody waits for the responses in between.
 */
export type PostgresTransaction = {
  /** @throws UndoneError when the connection was lost or others were in the way; nothing has taken effect then. */
  run(sql: string, parameters: readonly unknown[]): Promise<PostgresResult>;
  /** @throws UndoneError when nothing has taken effect, UnansweredError when the database does not say. */
  commit(): Promise<void>;
  /** Does nothing if the transaction has ended. */
  rollback(): Promise<void>;
};

/** The longest wait for another's lock, in milliseconds; the same as on SQLite. */
const lockTimeoutMs = 10_000;
/** The longest time for a statement. Ours are only slow when they wait. */
const statementTimeoutMs = 15_000;
/** The server ends a transaction whose owner is silent for this long: its locks block all others. */
const idleTimeoutMs = 30_000;
/** The client waits a little longer than the server, so that the server's error arrives first. */
const answerTimeoutMs = 20_000;

/**
 * Begins a transaction and sends its settings in the same message. One with an isolation level is ours and short, so
 * it gets time limits. One without is a migration, which may take as long as it needs.
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
  /** The number of statements that changed rows, or may have: failed ones and those without a response yet. */
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
      // The server rolls back what was not committed.
      throw new UndoneError("The connection to the database was lost in a transaction", { cause: error });
    }
  }
  function end(): void {
    ended = true;
    connection.release();
  }

  /** Commits; returns the error if the connection was lost and the outcome is unknown. */
  async function tryCommit(mark: string | undefined): Promise<LostConnectionError | undefined> {
    const statements = [...(mark === undefined ? [] : [marks.leave(mark)]), "commit"];
    try {
      const { command } = await connection.run(statements.join("; "), [], timeoutMs);
      // The server's response to a commit after a failed statement whose error was ignored.
      if (command === "ROLLBACK")
        throw new KitError("A statement of the transaction failed; nothing was kept");
      return undefined;
    } catch (error) {
      // After any other error the transaction is still open and will be rolled back.
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
        // The connection is lost, so the server rolls back by itself.
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

/**
 * Finds out if a commit took effect when its response was lost. Every transaction that changes rows leaves a mark in
 * the table `commits`, in the same message as the commit.
 *
 * | Row of a mark | Meaning | Authority |
 * |---|---|---|
 * | none | not committed so far | |
 * | `fenced` 0 | committed | the transaction itself |
 * | `fenced` 1 | not committed, and never will be: the mark is taken | the instance that asked |
 */
export type CommitMarks = {
  /** Returns a unique mark. */
  draw(): string;
  /** Returns the statement that leaves a mark. */
  leave(mark: string): string;
  /**
   * Resolves if the transaction with the mark was committed.
   *
   * @throws UndoneError when it was not and cannot be any more; UnansweredError when the database does not say.
   */
  findOut(mark: string, lost: Error): Promise<void>;
  /** Deletes old marks from time to time. */
  sweep(): void;
};

/** How long to try to find out; longer than the server keeps a transaction whose owner is gone. */
const inquiryMs = 45_000;
/** The longest pause between two tries. */
const longestPauseMs = 1_000;
/** The timeout of each query. A mark that is being committed makes it wait. */
const questionTimeoutMs = 20_000;
/** Marks older than this are deleted; no instance asks that late. */
const keptMs = 10 * 60 * 1000;
const sweepEveryMs = 60_000;

export function createCommitMarks(connections: PostgresConnections): CommitMarks {
  let sweptAt = Date.now();

  async function run(sql: string, parameters: readonly unknown[]) {
    const connection = await connections.take();
    try {
      return await connection.run(sql, parameters, questionTimeoutMs);
    } finally {
      connection.release();
    }
  }

  /**
   * Inserting the mark waits for its transaction if that is still running. Afterwards either the transaction's mark
   * exists or ours does; in that case a commit that reaches the server only now fails on our row. The row says which
   * came first, so asking again after a lost response gives the same result.
   */
  async function wasCommitted(mark: string): Promise<boolean> {
    await run(
      `insert into commits (id, fenced, at) values ($1, 1, ${statementTime}) on conflict (id) do nothing`,
      [mark],
    );
    const { rows } = await run("select fenced from commits where id = $1", [mark]);
    return rows[0]?.fenced === 0;
  }

  return {
    draw: () => randomBytes(16).toString("hex"),
    leave: (mark) => `insert into commits (id, fenced, at) values ('${mark}', 0, ${statementTime})`,

    async findOut(mark, lost) {
      const askUntil = performance.now() + inquiryMs;
      for (let pauseMs = 10; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        try {
          if (await wasCommitted(mark)) return;
          break;
        } catch (error) {
          if (performance.now() > askUntil) {
            throw new UnansweredError("The database did not say whether it kept a change", {
              cause: error,
              hints: ["It became unreachable at the moment of a commit, and stayed so."],
            });
          }
        }
        await delay(pauseMs);
      }
      throw new UndoneError("The connection to the database was lost before a commit", { cause: lost });
    },

    sweep() {
      const time = Date.now();
      if (time - sweptAt < sweepEveryMs) return;
      sweptAt = time;
      // Concurrent sweeps of several instances share the work. The rest is left to the next sweep.
      run(
        `delete from commits where id in (
          select id from commits where at < ${statementTime} - ${keptMs} for update skip locked)`,
        [],
      ).catch(() => {});
    },
  };
}
