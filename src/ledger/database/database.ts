import type { CompiledQuery, DatabaseConnection, DialectAdapter, Kysely } from "kysely";
import { KitError } from "../../util/errors.ts";

/*
 * How values are stored, on every database alike:
 * - amounts (uint256) are decimal text: no database has an integer that wide;
 * - times are unix milliseconds, except `valid_first` and `valid_last`, which are the payer's own words: decimal
 *   text of unix seconds;
 * - times, block numbers, chain ids and txNonces are 64-bit integers that stay below 2^53, and are read as numbers;
 * - hex is lower case, so that equal bytes are equal text.
 */

/**
 * An open database. Whose tables are in it is for their owners to say: `database.$extendTables<LedgerTables>()`.
 * `destroy()` finishes what is under way and closes it.
 */
export type Database = Kysely<Record<never, never>>;

/** The clock that everybody goes by who shares a database. */
export type DatabaseClock = {
  /** Unix milliseconds. */
  now(): number;
  /** The same in SQL, where the server has a clock of its own: exact, however long ago it was read. */
  statementTime?: string;
};

/** The clock of a database: a Postgres server's own, and that of this machine for SQLite, whose users share it. */
export function clockOf(db: Pick<Kysely<never>, "getExecutor">): DatabaseClock {
  const { adapter } = db.getExecutor();
  return hasClock(adapter) ? adapter.clock : { now: () => Date.now() };
}

function hasClock(adapter: DialectAdapter): adapter is DialectAdapter & { clock: DatabaseClock } {
  return "clock" in adapter;
}

/** A connection that can send statements without waiting for the answers to others. Without it, they take their turns. */
export type PipelinedConnection = DatabaseConnection & {
  /** Sends a statement of a transaction on its way; where it fails, the commit does. Gives what is answered by then. */
  sendUnanswered(query: CompiledQuery): Promise<{ rows: readonly unknown[] }>;
  /** Runs a statement by itself, once, on a connection kept for those that cannot wait. */
  runUrgently(query: CompiledQuery): Promise<void>;
};

export function isPipelined(connection: DatabaseConnection): connection is PipelinedConnection {
  return "sendUnanswered" in connection;
}

/** Counts who uses a database: it is closed when nothing is under way any more. */
export function countUsers(): { enter(): void; leave(): void; gone(): Promise<void> } {
  let users = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  let isClosing = false;
  return {
    enter() {
      if (isClosing) throw new KitError("The database has been closed", { code: "closed" });
      users++;
    },
    leave() {
      users--;
      if (isClosing && users === 0) resolve();
    },
    gone() {
      isClosing = true;
      if (users === 0) resolve();
      return promise;
    },
  };
}
