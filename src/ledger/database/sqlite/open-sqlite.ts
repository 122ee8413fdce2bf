import { type BigIntStats, closeSync, existsSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { ConfigurationError, KitError } from "../../../util/errors.ts";
import type { Database } from "../database.ts";
import { damageOf, isLocked } from "./node-sqlite.ts";

/**
 * Opens the SQLite file of a URL `sqlite:PATH`; creates it if it does not exist.
 *
 * @throws ConfigurationError when the URL names no file, or its folder does not exist.
 * @throws KitError when the file cannot be opened or is not an SQLite database.
 */
export async function openSqlite(url: string): Promise<Database> {
  const path = sqlitePath(url);
  // Imported here rather than at the top: loading Kysely takes longer than opening the file.
  const [{ Kysely }, { createSqliteDialect }, sqlite] = await Promise.all([
    import("kysely"),
    import("./sqlite-dialect.ts"),
    import("node:sqlite"),
  ]);
  let database: DatabaseSync | undefined;
  try {
    // Only this user may read the HMACs of keys and the signed transactions. SQLite gives its side files the same mode.
    if (path !== ":memory:" && !existsSync(path)) closeSync(openSync(path, "a", 0o600));
    database = new sqlite.DatabaseSync(path);
    configure(database, path);
  } catch (error) {
    if (database?.isOpen) database.close();
    const [problem, advice] = damageOf(error) ?? [];
    throw new KitError(`The database ${path} could not be opened`, {
      cause: problem === undefined ? error : new Error(problem, { cause: error }),
      hints: [
        advice ??
          "It must be an SQLite file on a local disk that this user may write, and so must be its folder.",
      ],
    });
  }
  // A database in memory is visible to a single connection only.
  const openReader = () => new sqlite.DatabaseSync(path, { readOnly: true });
  const dialect = createSqliteDialect(database, path === ":memory:" ? {} : { openReader });
  const opened: Database = new Kysely({ dialect });
  if (path !== ":memory:") rememberFile(opened, path);
  return opened;
}

function configure(database: DatabaseSync, path: string): void {
  // Only while opening, when nothing waits for this process. Later, the driver does the waiting.
  database.exec("PRAGMA busy_timeout = 5000");
  const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode;
  if (mode !== "wal" && path !== ":memory:") {
    throw new KitError(`SQLite cannot use its write-ahead log here: the journal mode is ${mode}`);
  }
  // Reported commits survive a power loss, not only a crash.
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  // For the statement journal: a claim of many payments would otherwise spill it to a file.
  database.exec("PRAGMA temp_store = MEMORY");
  database.exec("PRAGMA busy_timeout = 0");
  requireWritable(database);
}

/** Writes and rolls back; otherwise a read-only file would go unnoticed until the first payment. */
function requireWritable(database: DatabaseSync): void {
  try {
    database.exec("BEGIN IMMEDIATE");
  } catch (error) {
    // Another process is writing to it.
    if (isLocked(error)) return;
    throw error;
  }
  try {
    database.exec("PRAGMA user_version = 0");
  } finally {
    database.exec("ROLLBACK");
  }
}

function sqlitePath(url: string): string {
  const problem = (text: string) =>
    new ConfigurationError([{ name: "DATABASE_URL", problem: text, example: "sqlite:./facilitator.db" }]);
  const path = url.slice("sqlite:".length);
  if (path === ":memory:") return path;
  if (path === "") throw problem("names no file");
  // Some would read sqlite://data.db as a file in the root folder, others as a relative path.
  if (path.startsWith("//")) throw problem("must be written sqlite:PATH, without slashes before the path");
  const absolute = resolve(path);
  if (!existsSync(dirname(absolute))) throw problem(`the folder ${dirname(absolute)} does not exist`);
  return absolute;
}

/** Returns true if a URL names an SQLite file that does not exist. Opening it would create an empty one. */
export function isMissingFile(url: string): boolean {
  if (!url.startsWith("sqlite:")) return false;
  const file = url.slice("sqlite:".length);
  return file !== ":memory:" && !existsSync(resolve(file));
}

/** The files of open databases, with their status at the time of opening. */
const files = new WeakMap<Database, { path: string; opened: BigIntStats }>();

function rememberFile(database: Database, path: string): void {
  const opened = statusOf(path);
  if (opened !== undefined) files.set(database, { path, opened });
}

/**
 * Returns true if an open database's file is no longer at its path: it was removed, moved or replaced. SQLite keeps
 * writing to it without an error. Returns false if no file was remembered.
 */
export function isFileGone(database: Database): boolean {
  const file = files.get(database);
  if (file === undefined) return false;
  const now = statusOf(file.path);
  return now?.ino !== file.opened.ino || now.dev !== file.opened.dev;
}

function statusOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
