// Imported, not global: a test that installs fake timers must not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import type { Compilable, InferResult, Kysely, Transaction } from "kysely";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { type Database, isPipelined } from "./database.ts";
import { isFileGone } from "./sqlite/open-sqlite.ts";

/**
 * Runs `work` in one transaction; commits when it resolves and undoes everything when it throws. `work` must use the
 * given transaction only: a query on the database itself would wait for the end of the transaction, and so for ever.
 *
 * On Postgres others go on meanwhile: every statement sees what was committed before it began (READ COMMITTED), so
 * that what was read may be old when the next statement runs. Work that decides by what it has read first locks the row
 * that stands for the decision: the operator's for all that is done to its txNonces (`ledger/tx-nonces.ts`), the payer's
 * account for what its balance backs, the organization's for its settings. See docs/decisions/0007-two-databases.md.
 *
 * When the database undid it for a reason that passes (a deadlock, a lost connection), `work` runs again from the
 * beginning, so what it does beside the database must bear to be done several times. A commit whose answer was lost is
 * looked up: work that is in the database is never done a second time.
 *
 * @throws UndeterminedError when the database cannot be reached, or does not say whether it kept a commit.
 */
export function inTransaction<Tables, T>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return untilDone(() => db.transaction().setIsolationLevel("read committed").execute(work));
}

/** Runs several reads that see the database at one moment. */
export function inSnapshot<Tables, T>(
  db: Kysely<Tables>,
  reads: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return untilDone(() =>
    db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(reads),
  );
}

/**
 * Runs a statement that cannot wait until those have been answered who asked before: on Postgres it has a connection of
 * its own, and no answer is waited for long. It is run once; see `repeatable`.
 */
export function urgently<Tables>(db: Kysely<Tables>, statement: Compilable): Promise<void> {
  const compiled = statement.compile();
  return db.getExecutor().provideConnection(async (connection) => {
    if (isPipelined(connection)) await connection.runUrgently(compiled);
    else await connection.executeQuery(compiled);
  });
}

/**
 * Runs statements of a transaction in this order, those `before` first, all sent at once: on Postgres they take one round
 * trip together. None can be made of another's result. Gives the rows of each, without those of `before`.
 */
export function allAtOnce<Tables, const Statements extends readonly Compilable[]>(
  transaction: Transaction<Tables>,
  statements: Statements,
  before: readonly Compilable[] = [],
): Promise<{ [Index in keyof Statements]: InferResult<Statements[Index]> }> {
  const compiled = [...before, ...statements].map((statement) => statement.compile());
  const results = transaction
    .getExecutor()
    .provideConnection((connection) => Promise.all(compiled.map((one) => connection.executeQuery(one))));
  // Kysely's contract: the rows have the shape of the query's type.
  return results.then((all) => all.slice(before.length).map(({ rows }) => rows)) as Promise<{
    [Index in keyof Statements]: InferResult<Statements[Index]>;
  }>;
}

/**
 * Sends the last statements of a transaction on their way together with its commit, which is to follow at once: on
 * Postgres they take one round trip together. Gives the rows of each, which are there after the commit; where one fails, so does
 * the transaction.
 */
export async function withCommit<Tables, const Statements extends readonly Compilable[]>(
  transaction: Transaction<Tables>,
  statements: Statements,
): Promise<{ [Index in keyof Statements]: Answer<Statements[Index]> }> {
  const compiled = statements.map((statement) => statement.compile());
  const answers: unknown[] = [];
  await transaction.getExecutor().provideConnection(async (connection) => {
    for (const one of compiled) {
      if (isPipelined(connection)) answers.push(connection.sendUnanswered(one));
      else answers.push(Promise.resolve(await connection.executeQuery(one)));
    }
  });
  // As in `allAtOnce`.
  return answers as { [Index in keyof Statements]: Answer<Statements[Index]> };
}

type Answer<Statement extends Compilable> = Promise<{ rows: InferResult<Statement> }>;

/** Nothing of the work has happened, for a reason that passes: it may be done again. */
export class UndoneError extends UndeterminedError {}

/** The connection was lost before the answer to a statement or a commit: it may have happened, or may not. */
export class UnansweredError extends UndeterminedError {}

/** For how long work is tried again after it was first undone, in milliseconds: a database server that restarts is back by then. */
const timeoutMs = 10_000;

/** The work is tried at least this often: a single try may take longer than the time limit. */
const fewestTries = 3;

/** The longest pause between two tries, in milliseconds. */
const longestPauseMs = 500;

/** Does the work again while it fails with an {@link UndoneError}, for ten seconds. */
export function untilDone<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError);
}

/**
 * Does work again that may have happened already: a single statement that changes nothing when it comes a second time.
 * Without this, such a statement outside a transaction fails with its connection.
 *
 * @throws UnansweredError when it may have happened, whatever became of the last try.
 */
export function repeatable<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError || error instanceof UnansweredError);
}

async function doAgain<T>(work: () => Promise<T>, passes: (error: unknown) => boolean): Promise<T> {
  // From the first failure: work that waits for its turn behind others meets no outage.
  let deadline: number | undefined;
  let unanswered: UnansweredError | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UnansweredError) unanswered ??= error;
      if (!passes(error)) throw unanswered ?? error;
      deadline ??= performance.now() + timeoutMs;
      if (tries >= fewestTries && performance.now() > deadline) throw unanswered ?? error;
      // Of random length: those that collided should not meet again.
      await delay(Math.random() * Math.min(5 * 2 ** tries, longestPauseMs));
    }
  }
}

/** The row that the check writes, among the marks of commits: every database has the table. */
const mark = "write check";

/** How long an answer waits for the write, in milliseconds. */
const answerTimeoutMs = 1_000;
/** A write may wait for others for this long, as it does behind a slow remote signer, before that is a problem. */
const queueTimeoutMs = 15_000;

/**
 * Creates a check whether a database takes writes, and keeps them. With a full disk, or a file that has become read-only, it
 * does not, and every payment would be refused. The check writes one row, always the same. It resolves with what is wrong, in words
 * that may be shown to callers, or with null; it never throws.
 */
export function createWriteCheck(database: Database): () => Promise<string | null> {
  const db = database.$extendTables<{ commits: { id: string; fenced: number; at: number } }>();
  let writing: Promise<string | null> | undefined;
  let writtenAt = performance.now();

  async function write(): Promise<string | null> {
    try {
      const at = Date.now();
      await db
        .insertInto("commits")
        .values({ id: mark, fenced: 0, at })
        .onConflict((conflict) => conflict.column("id").doUpdateSet({ at }))
        .execute();
      writtenAt = performance.now();
      return isFileGone(database)
        ? "The database file was removed or replaced: what is written is lost when this process ends"
        : null;
    } catch (error) {
      return error instanceof KitError ? error.message : "The database cannot be written";
    } finally {
      writing = undefined;
    }
  }

  return async () => {
    // Nothing was written while nothing was asked: that says nothing.
    if (writing === undefined) writtenAt = performance.now();
    writing ??= write();
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(() => resolve(null), answerTimeoutMs);
    const problem = await Promise.race([writing, late]);
    clearTimeout(timer);
    if (problem !== null || writing === undefined) return problem;
    return performance.now() - writtenAt > queueTimeoutMs ? "The database takes too long to write" : null;
  };
}
