// Imported, not global, so that a test with fake timers does not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import type { Compilable, InferResult, Kysely, Transaction } from "kysely";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { type Database, isPipelined } from "./database.ts";
import { isFileGone } from "./sqlite/open-sqlite.ts";

/**
 * Runs `work` in one transaction: commits when it resolves, rolls back when it throws. `work` must query the given
 * transaction only; a query on the database itself would wait for the end of the transaction, and so deadlock.
 *
 * On Postgres, transactions run concurrently at READ COMMITTED: each statement sees what was committed before it
 * began, so a value may be stale by the next statement. Work that decides by what it has read first locks the row that
 * guards the decision: the operator's for its txNonces (`ledger/tx-nonces.ts`), the payer's account for its balance,
 * the organization's for its settings. See docs/decisions/0007-two-databases.md.
 *
 * If the database rolled back for a temporary reason (a deadlock, a lost connection), `work` runs again from the
 * beginning, so its side effects outside the database must be safe to repeat. If the response to a commit was lost,
 * the commit is looked up, so committed work is never done twice.
 *
 * @throws UndeterminedError when the database cannot be reached, or does not say whether it kept a commit.
 */
export function inTransaction<Tables, T>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return untilDone(() => db.transaction().setIsolationLevel("read committed").execute(work));
}

/** Runs several reads that see the database at a single moment. */
export function inSnapshot<Tables, T>(
  db: Kysely<Tables>,
  reads: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  return untilDone(() =>
    db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(reads),
  );
}

/**
 * Runs a statement ahead of all queued ones. On Postgres it has a connection of its own, with a short timeout. It runs
 * only once; to retry it, see `repeatable`.
 */
export function urgently<Tables>(db: Kysely<Tables>, statement: Compilable): Promise<void> {
  const compiled = statement.compile();
  return db.getExecutor().provideConnection(async (connection) => {
    if (isPipelined(connection)) await connection.runUrgently(compiled);
    else await connection.executeQuery(compiled);
  });
}

/**
 * Sends statements of a transaction all at once, in this order and those of `before` first; on Postgres they share one
 * round trip. None can depend on another's result. Returns the rows of each, without those of `before`.
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
 * Sends the last statements of a transaction together with its commit, which must follow at once; on Postgres they
 * share one round trip. Returns a promise for the rows of each, which resolves by the time of the commit. If one
 * fails, so does the transaction.
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

/** The work had no effect, for a temporary reason: it can be run again. */
export class UndoneError extends UndeterminedError {}

/** The connection was lost before the response to a statement or commit, which may or may not have taken effect. */
export class UnansweredError extends UndeterminedError {}

/** How long work is retried after its first failure, in milliseconds; a restarting database server is back by then. */
const timeoutMs = 10_000;

/** The minimum number of tries, because a single one may take longer than the time limit. */
const fewestTries = 3;

/** The longest pause between two tries, in milliseconds. */
const longestPauseMs = 500;

/** Retries the work while it fails with an {@link UndoneError}, for ten seconds. */
export function untilDone<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError);
}

/**
 * Retries work even if it may have taken effect: a single statement that is safe to repeat. Without this, such a
 * statement outside a transaction fails with its connection.
 *
 * @throws UnansweredError when any try may have taken effect, however the last one failed.
 */
export function repeatable<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError || error instanceof UnansweredError);
}

async function doAgain<T>(work: () => Promise<T>, passes: (error: unknown) => boolean): Promise<T> {
  // Counted from the first failure: work that waits in a queue may be slow without any outage.
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
      // Random, so that transactions that collided do not collide again.
      await delay(Math.random() * Math.min(5 * 2 ** tries, longestPauseMs));
    }
  }
}

/** The id of the row that the check writes. It is in `commits` because every database has that table. */
const mark = "write check";

/** How long a check waits for the write, in milliseconds. */
const answerTimeoutMs = 1_000;
/** How long a write may queue before that is a problem, in milliseconds; a slow remote signer can delay it this much. */
const queueTimeoutMs = 15_000;

/**
 * Creates a check that the database accepts and keeps writes. With a full disk or a read-only file it does not, and
 * every payment would be refused. The check always writes the same row. It resolves with the problem, in text that is
 * safe to show to callers, or with null; it never throws.
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
    // Without a pending write, the time since the last one is not a delay.
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
