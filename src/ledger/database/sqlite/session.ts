import type { DatabaseSync } from "node:sqlite";
// Imported, not global: a test that installs fake timers must not stop its database.
import { setImmediate } from "node:timers";
import { KitError } from "../../../util/errors.ts";
import type { StatementResult } from "../dialect.ts";
import { createSqliteConnection, whileLocked } from "./connection.ts";

/**
 * The one connection to an SQLite file, shared by this whole process. Work is done in units: a single
 * statement, or a transaction of many. Units run one after the other in the order in which they asked, whatever
 * they await in between, and a unit sees nothing of another that is not finished.
 *
 * Units that are finished while others are queueing are committed together, as databases with many clients do:
 * the disk is synced once for all of them. No unit is reported done before that commit, and one that fails is
 * undone alone (each is a savepoint of the shared transaction).
 */
export type SqliteSession = {
  /** Runs one statement as a unit of its own. `readsOnly` spares it the write lock. */
  run(sql: string, parameters: readonly unknown[], readsOnly: boolean): Promise<StatementResult>;
  /** Opens a unit of many statements, when its turn has come. No other unit runs until it ends. */
  begin(): Promise<SqliteUnit>;
  /** Lets what is queued finish, then closes the file. */
  close(): Promise<void>;
};

/** A unit of many statements, which run at once. */
export type SqliteUnit = {
  run(sql: string, parameters: readonly unknown[]): StatementResult;
  /** Ends the unit; resolves when it is on disk. When it rejects, nothing of the unit has happened. */
  commit(): Promise<void>;
  /** Ends the unit and undoes it. Does nothing to a unit that has ended. */
  rollback(): void;
};

/** Finished units that wait for their common commit. */
type Group = { units: number; openedAt: number; committed: PromiseWithResolvers<void> };

/** A group is committed at the latest when it holds so many units … */
const groupUnits = 256;
/** … or is so old, in milliseconds: a unit may await something slow, and the finished ones should not wait for it. */
const groupAgeMs = 5;

/** Even after a long wait in the queue, another process may have the lock for this long, in milliseconds. */
const leastLockTimeoutMs = 100;

/**
 * A session on an open database, which it owns from now on. It waits up to `lockTimeoutMs` for another process, or
 * another session in this one, to give up the write lock.
 */
export function createSqliteSession(
  database: DatabaseSync,
  { lockTimeoutMs = 10_000 }: { lockTimeoutMs?: number } = {},
): SqliteSession {
  const connection = createSqliteConnection(database);
  const { execute } = connection;
  const queue: (() => void)[] = [];
  let occupied = false;
  let group: Group | null = null;
  let commitScheduled = false;

  /** Waits for one's turn. The unit that ends hands the turn over, so that none can jump the queue. */
  async function enter(): Promise<void> {
    if (occupied) await new Promise<void>((resolve) => queue.push(resolve));
    occupied = true;
  }

  function leave(): void {
    const next = queue.shift();
    const due =
      group !== null && (group.units >= groupUnits || performance.now() - group.openedAt > groupAgeMs);
    if (group !== null && due) commitGroup(group);
    if (next === undefined) {
      occupied = false;
      if (group !== null) scheduleCommit();
    } else if (due) {
      // A long queue would otherwise keep the event loop, and other processes, out for as long as it lasts.
      setImmediate(next);
    } else {
      next();
    }
  }

  // One turn of the event loop later, so that units which begin in the same turn share the commit.
  function scheduleCommit(): void {
    if (commitScheduled) return;
    commitScheduled = true;
    setImmediate(() => {
      commitScheduled = false;
      if (group !== null && !occupied) commitGroup(group);
    });
  }

  /** The transaction that the coming unit joins. */
  async function joinGroup(askedAt: number): Promise<Group> {
    if (group === null) {
      // Deferred transactions cannot be used: one that reads before it writes fails beside another writer.
      await whileLocked(lockDeadline(askedAt), () => execute("BEGIN IMMEDIATE"));
      const committed = Promise.withResolvers<void>();
      committed.promise.catch(() => {}); // its units hear of it; there may be none
      group = { units: 0, openedAt: performance.now(), committed };
    }
    return group;
  }

  function commitGroup(finished: Group): void {
    try {
      execute("COMMIT");
      group = null;
      finished.committed.resolve();
    } catch (error) {
      loseGroup(finished, error);
    }
  }

  /** Undoes the shared transaction, and with it the units that are finished. */
  function loseGroup(lost: Group, error: unknown): void {
    group = null;
    lost.committed.reject(error);
    try {
      if (connection.isInTransaction) execute("ROLLBACK");
    } catch {
      // The next unit cannot begin its transaction, and gets the reason.
    }
  }

  /** On errors such as a full disk SQLite rolls the whole transaction back by itself. */
  function noticeLoss(error: unknown): void {
    if (group !== null && !connection.isInTransaction) loseGroup(group, error);
  }

  /** Counted from the asking: otherwise each in a long queue would wait the whole time, one after the other. */
  const lockDeadline = (askedAt: number) =>
    Math.max(askedAt + lockTimeoutMs, performance.now() + leastLockTimeoutMs);

  return {
    async run(sql, parameters, readsOnly) {
      const askedAt = performance.now();
      await enter();
      let result: StatementResult;
      let joined: Group | null;
      try {
        if (!readsOnly) await joinGroup(askedAt);
        result = await whileLocked(lockDeadline(askedAt), () => execute(sql, parameters));
        joined = group;
        if (joined !== null) joined.units++;
      } catch (error) {
        noticeLoss(error);
        throw error;
      } finally {
        leave();
      }
      // A read joins too: what it saw may be of units that are not committed yet.
      await joined?.committed.promise;
      return result;
    },

    async begin() {
      const askedAt = performance.now();
      await enter();
      let joined: Group;
      try {
        joined = await joinGroup(askedAt);
        execute("SAVEPOINT unit");
      } catch (error) {
        noticeLoss(error);
        leave();
        throw error;
      }
      let ended = false;
      /** Ends the unit by the given statements. Where they fail, what of it would be committed is unknown. */
      const end = (...statements: string[]) => {
        ended = true;
        try {
          if (group === joined) for (const statement of statements) execute(statement);
        } catch (error) {
          loseGroup(joined, error);
        }
      };
      return {
        run(sql, parameters) {
          // Without this check a statement after a lost transaction would be committed by itself.
          if (ended || group !== joined) throw new KitError("The transaction has ended");
          try {
            return execute(sql, parameters);
          } catch (error) {
            noticeLoss(error);
            throw error;
          }
        },
        async commit() {
          if (ended) throw new KitError("The transaction has ended");
          end("RELEASE unit");
          joined.units++;
          leave();
          await joined.committed.promise;
        },
        rollback() {
          if (ended) return;
          end("ROLLBACK TO unit", "RELEASE unit");
          leave();
        },
      };
    },

    async close() {
      await enter();
      if (group !== null) commitGroup(group);
      connection.close();
      leave();
    },
  };
}
