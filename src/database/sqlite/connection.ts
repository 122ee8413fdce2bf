import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
// Imported, not global: a test that installs fake timers must not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import { UndeterminedError } from "../../errors.ts";
import type { StatementResult } from "../dialect.ts";

/** Distinct statements kept prepared; preparing one costs more than running it. */
const preparedStatements = 256;

/** An open SQLite file that keeps its statements prepared. */
export type SqliteConnection = {
  readonly isInTransaction: boolean;
  execute(sql: string, parameters?: readonly unknown[]): StatementResult;
  close(): void;
};

/** Makes a {@link SqliteConnection} of an open database, which it owns from now on. */
export function createSqliteConnection(database: DatabaseSync): SqliteConnection {
  const prepared = new Map<string, { statement: StatementSync; returnsRows: boolean }>();

  function prepare(sql: string) {
    let entry = prepared.get(sql);
    if (entry === undefined) {
      const statement = database.prepare(sql);
      entry = { statement, returnsRows: statement.columns().length > 0 };
      prepared.set(sql, entry);
      const [oldest] = prepared.keys();
      if (prepared.size > preparedStatements && oldest !== undefined) prepared.delete(oldest);
    }
    return entry;
  }

  return {
    get isInTransaction() {
      return database.isTransaction;
    },
    execute(sql, parameters = []) {
      const { statement, returnsRows } = prepare(sql);
      const values = parameters.map(toSqliteValue);
      if (returnsRows) return { rows: statement.all(...values), changes: undefined };
      return { rows: [], changes: BigInt(statement.run(...values).changes) };
    },
    close() {
      prepared.clear();
      database.close();
    },
  };
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

/**
 * Tries again while another process, or another connection of this one, holds SQLite's lock, until `deadline` in the
 * time of `performance.now()`. SQLite's own busy timeout would stop this whole process meanwhile, and for good where
 * the holder is in this very process.
 *
 * @throws UndeterminedError when the lock was not given up in time.
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

/** The low byte of an SQLite error's code; the upper bytes say why. Undefined for other errors. */
export function sqliteErrorCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number"
    ? error.errcode & 0xff
    : undefined;
}

const sqliteBusy = 5;

function isLocked(error: unknown): boolean {
  return sqliteErrorCode(error) === sqliteBusy;
}
