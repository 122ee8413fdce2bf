import type { CompiledQuery, DatabaseConnection, DialectAdapter, Kysely } from "kysely";
import { KitError } from "../../util/errors.ts";

/*
 * How values are stored, in both databases:
 * - amounts (uint256) are decimal text, because no database has an integer that wide;
 * - times are unix milliseconds, except `valid_first` and `valid_last`, which are the payer's: unix seconds as decimal text;
 * - times, block numbers, chain ids and txNonces are 64-bit integers below 2^53, and are read as numbers;
 * - hex is lower case, so that equal bytes are equal text.
 */

/**
 * An open database. The modules that own tables add their types: `database.$extendTables<LedgerTables>()`. `destroy()`
 * waits for running work and closes it.
 */
export type Database = Kysely<Record<never, never>>;

/** The clock shared by all processes that use a database. */
export type DatabaseClock = {
  /** Unix milliseconds. */
  now(): number;
  /** The same as an SQL expression, if the server has its own clock. Exact, however long ago the clock was read. */
  statementTime?: string;
};

/** Returns the clock of a database: the server's for Postgres, this machine's for SQLite, whose users all run on it. */
export function clockOf(db: Pick<Kysely<never>, "getExecutor">): DatabaseClock {
  const { adapter } = db.getExecutor();
  return hasClock(adapter) ? adapter.clock : { now: () => Date.now() };
}

function hasClock(adapter: DialectAdapter): adapter is DialectAdapter & { clock: DatabaseClock } {
  return "clock" in adapter;
}

/** A connection that can send statements without waiting for earlier responses. Others run them one by one. */
export type PipelinedConnection = DatabaseConnection & {
  /** Sends a statement of a transaction. If it fails, so does the commit. Its result resolves by the time of the commit. */
  sendUnanswered(query: CompiledQuery): Promise<{ rows: readonly unknown[] }>;
  /** Runs a single statement once, on a connection reserved for urgent ones. */
  runUrgently(query: CompiledQuery): Promise<void>;
};

export function isPipelined(connection: DatabaseConnection): connection is PipelinedConnection {
  return "sendUnanswered" in connection;
}

/** Counts the users of a database, so that closing can wait for them. */
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
