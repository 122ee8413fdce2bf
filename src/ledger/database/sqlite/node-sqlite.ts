import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
// Imported, not global, so that a test with fake timers does not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import type { CompiledQuery, QueryResult } from "kysely";
import { UndeterminedError } from "../../../util/errors.ts";

/** The number of prepared statements to cache; preparing one costs more than running it. */
const preparedStatements = 256;

type Prepared = { statement: StatementSync; givesRows: boolean };

/** Creates the function that runs queries on an open file. Its errors explain what is wrong with the file or its disk. */
export function createQueryRunner(file: DatabaseSync): (query: CompiledQuery) => QueryResult<unknown> {
  const kept = new Map<string, Prepared>();

  function prepare(sql: string): Prepared {
    const statement = file.prepare(sql);
    const prepared = { statement, givesRows: statement.columns().length > 0 };
    kept.set(sql, prepared);
    const [oldest] = kept.keys();
    if (kept.size > preparedStatements && oldest !== undefined) kept.delete(oldest);
    return prepared;
  }

  return ({ sql, parameters }) => {
    const values = toSqliteValues(parameters);
    try {
      const { statement, givesRows } = kept.get(sql) ?? prepare(sql);
      if (givesRows) return { rows: statement.all(...values) };
      const { changes, lastInsertRowid } = statement.run(...values);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      throw explained(error);
    }
  };
}

function toSqliteValues(parameters: readonly unknown[]): readonly SQLInputValue[] {
  const values: SQLInputValue[] = [];
  for (const value of parameters) {
    const isStored =
      typeof value === "string" ||
      typeof value === "number" ||
      typeof value === "bigint" ||
      value === null ||
      value instanceof Uint8Array;
    if (!isStored) throw new TypeError(`SQLite cannot store a value of type ${typeof value}`);
    values.push(value);
  }
  return values;
}

/**
 * Retries while another connection holds SQLite's lock, until `deadline` (in the time of `performance.now()`).
 * SQLite's own busy timeout would block this whole process, and forever if the holder is in this process.
 *
 * @throws UndeterminedError when the lock was not released in time.
 */
export async function whileLocked<T>(deadline: number, work: () => T): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (performance.now() > deadline) {
        throw new UndeterminedError("The database is in use by another process", {
          cause: error,
          hints: ["It has held the write lock for too long: see which process has the file open."],
        });
      }
      await delay(Math.min(1 + attempt, 10));
    }
  }
}

const sqliteBusy = 5;

export function isLocked(error: unknown): boolean {
  return sqliteErrorCode(error) === sqliteBusy;
}

/** The primary result code of an SQLite error, without the extended bits; undefined for other errors. */
function sqliteErrorCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number"
    ? error.errcode & 0xff
    : undefined;
}

const restoring =
  "keep the file, with those that SQLite has beside it, and restore the last backup: see Backups in docs/guides/operations.md of this package.";

/** The problem with the file or its disk, and the advice, by SQLite's result code. */
const fileProblems: Readonly<Record<number, readonly [problem: string, advice: string]>> = {
  // SQLITE_READONLY
  8: [
    "The database file cannot be written",
    "This user may not write it or its folder, or the disk is mounted read-only.",
  ],
  // SQLITE_IOERR
  10: ["The disk of the database failed", "The log of the system says more."],
  // SQLITE_CORRUPT
  11: ["The database file is damaged", `Stop the service, ${restoring}`],
  // SQLITE_FULL
  13: ["The disk of the database is full", "Make room; the service goes on by itself."],
  // SQLITE_CANTOPEN
  14: ["The database file cannot be opened", "Look whether it and its folder are still there."],
  // SQLITE_NOTADB
  26: [
    "The file is no SQLite database, or its beginning is damaged",
    `Look whether DATABASE_URL names the right file. If it does, ${restoring}`,
  ],
};

/** Returns the problem and advice for a file whose content cannot be read; undefined for any other error. */
export function damageOf(error: unknown): readonly [problem: string, advice: string] | undefined {
  const code = sqliteErrorCode(error) ?? 0;
  return [11, 26].includes(code) ? fileProblems[code] : undefined;
}

/** Explains an error of `node:sqlite` that is about the file; returns any other error unchanged. */
function explained(error: unknown): unknown {
  const [problem, advice] = fileProblems[sqliteErrorCode(error) ?? 0] ?? [];
  if (problem === undefined || advice === undefined) return error;
  return new UndeterminedError(problem, { cause: error, hints: [advice] });
}
