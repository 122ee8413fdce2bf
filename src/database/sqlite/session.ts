import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
// Imported, not global: a test that installs fake timers must not stop its database.
import { setImmediate } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";
import { KitError, UndeterminedError } from "../../errors.ts";

/** What running one statement gave. */
export type StatementResult = {
  rows: Record<string, unknown>[];
  changes: bigint | undefined;
};

/**
 * The one connection to an SQLite file, shared by everybody in this process. Work is done in units: a single
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
  /** Opens a unit of many statements, when its turn has come. Until it ends nobody else's work is done. */
  begin(): Promise<SqliteUnit>;
  /** Lets what is queued finish, then closes the file. */
  close(): Promise<void>;
};

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
const leastPatienceMs = 100;

/** Distinct statements kept prepared; preparing one costs more than running it. */
const preparedStatements = 256;

/**
 * A session on an open database, which it owns from now on. It waits up to `lockPatienceMs` for another process, or
 * another session in this one, to give up the write lock.
 */
export function createSqliteSession(
  database: DatabaseSync,
  { lockPatienceMs = 10_000 }: { lockPatienceMs?: number } = {},
): SqliteSession {
  const prepared = new Map<string, { statement: StatementSync; returnsRows: boolean }>();
  const queue: (() => void)[] = [];
  let occupied = false;
  let group: Group | null = null;
  let commitScheduled = false;

  function prepare(sql: string) {
    let entry = prepared.get(sql);
    if (entry === undefined) {
      const statement = database.prepare(sql);
      entry = { statement, returnsRows: statement.columns().length > 0 };
      prepared.set(sql, entry);
      if (prepared.size > preparedStatements) {
        for (const oldest of prepared.keys()) {
          prepared.delete(oldest);
          break;
        }
      }
    }
    return entry;
  }

  function execute(sql: string, parameters: readonly unknown[]): StatementResult {
    const { statement, returnsRows } = prepare(sql);
    const values = parameters.map(toSqliteValue);
    if (returnsRows) return { rows: statement.all(...values), changes: undefined };
    return { rows: [], changes: BigInt(statement.run(...values).changes) };
  }

  /** Waits for one's turn. Whoever had the turn before hands it over, so that nobody can push in. */
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
      await whileLocked(askedAt, () => execute("BEGIN IMMEDIATE", []));
      const committed = Promise.withResolvers<void>();
      committed.promise.catch(() => {}); // its units hear of it; there may be none
      group = { units: 0, openedAt: performance.now(), committed };
    }
    return group;
  }

  function commitGroup(finished: Group): void {
    try {
      execute("COMMIT", []);
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
      if (database.isTransaction) execute("ROLLBACK", []);
    } catch {
      // Whoever comes next finds a transaction that cannot be begun, and hears why.
    }
  }

  /** On errors such as a full disk SQLite rolls the whole transaction back by itself. */
  function noticeLoss(error: unknown): void {
    if (group !== null && !database.isTransaction) loseGroup(group, error);
  }

  /**
   * Tries again while somebody else holds SQLite's lock. SQLite's own busy timeout would stop this whole process
   * meanwhile, and for good where the holder is another session of this very process.
   */
  async function whileLocked<T>(askedAt: number, work: () => T): Promise<T> {
    // Counted from the asking, lest everybody in a long queue waits the whole time one after the other.
    const patientUntil = Math.max(askedAt + lockPatienceMs, performance.now() + leastPatienceMs);
    for (let attempt = 0; ; attempt++) {
      try {
        return work();
      } catch (error) {
        if (!isLocked(error)) throw error;
        if (performance.now() > patientUntil) {
          throw new UndeterminedError("The database is in use by another process", {
            cause: error,
            hints: ["It has held the write lock for too long: see which process has the file open."],
          });
        }
        await delay(Math.min(1 + attempt, 10));
      }
    }
  }

  return {
    async run(sql, parameters, readsOnly) {
      const askedAt = performance.now();
      await enter();
      let result: StatementResult;
      let joined: Group | null;
      try {
        if (!readsOnly) await joinGroup(askedAt);
        result = await whileLocked(askedAt, () => execute(sql, parameters));
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
        execute("SAVEPOINT unit", []);
      } catch (error) {
        noticeLoss(error);
        leave();
        throw error;
      }
      let ended = false;
      /** Ends the unit by the given statements. Where they fail, nobody can tell what of it would be committed. */
      const end = (...statements: string[]) => {
        ended = true;
        try {
          if (group === joined) for (const statement of statements) execute(statement, []);
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
      prepared.clear();
      database.close();
      leave();
    },
  };
}

function isLocked(error: unknown): boolean {
  // SQLITE_BUSY is 5; the upper bytes tell why.
  return (
    error instanceof Error &&
    "errcode" in error &&
    typeof error.errcode === "number" &&
    (error.errcode & 0xff) === 5
  );
}

function toSqliteValue(value: unknown): SQLInputValue {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return value;
    default:
      if (value === null || value instanceof Uint8Array) return value;
      throw new TypeError(`SQLite cannot store a value of type ${typeof value}`);
  }
}
