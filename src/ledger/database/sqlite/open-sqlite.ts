import { closeSync, existsSync, openSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { ConfigurationError, KitError } from "../../../util/errors.ts";
import type { Database } from "../database.ts";
import { isLocked } from "./connection.ts";
import { rememberFile } from "./moved-file.ts";

/**
 * Opens the SQLite file of a URL `sqlite:PATH`, and creates it when it does not exist.
 *
 * @throws ConfigurationError when the URL names no file, or its folder does not exist.
 * @throws KitError when the file cannot be opened or is not an SQLite database.
 */
export async function openSqlite(url: string): Promise<Database> {
  const path = sqlitePath(url);
  // Loaded here and not with this module: loading Kysely takes longer than opening the file.
  const [{ Kysely }, { createSqliteDialect }, sqlite] = await Promise.all([
    import("kysely"),
    import("./dialect.ts"),
    import("node:sqlite"),
  ]);
  let database: DatabaseSync | undefined;
  try {
    // Keys' HMACs and signed transactions are for this user alone to read. SQLite gives its side files the same mode.
    if (path !== ":memory:" && !existsSync(path)) closeSync(openSync(path, "a", 0o600));
    database = new sqlite.DatabaseSync(path);
    configure(database, path);
  } catch (error) {
    if (database?.isOpen) database.close();
    throw new KitError(`The database ${path} could not be opened`, {
      cause: error,
      hints: [
        "It must be an SQLite file on a local disk that this user may write, and so must be its folder.",
      ],
    });
  }
  // Each database in memory is of one connection alone.
  const openReader =
    path === ":memory:" ? undefined : () => new sqlite.DatabaseSync(path, { readOnly: true });
  const opened: Database = new Kysely({ dialect: createSqliteDialect(database, openReader) });
  if (path !== ":memory:") rememberFile(opened, path);
  return opened;
}

function configure(database: DatabaseSync, path: string): void {
  // Only while opening, when nothing waits for this process: afterwards the session does the waiting.
  database.exec("PRAGMA busy_timeout = 5000");
  const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.journal_mode;
  if (mode !== "wal" && path !== ":memory:") {
    throw new KitError(`SQLite cannot use its write-ahead log here: the journal mode is ${mode}`);
  }
  // What was reported done survives a loss of power, not only a crash.
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  // Copies of pages by which a part of a transaction is undone: a claim of many payments would write them to a file.
  database.exec("PRAGMA temp_store = MEMORY");
  database.exec("PRAGMA busy_timeout = 0");
  requireWritable(database);
}

/** Writes and undoes it: that a file can only be read would else be noticed with the first payment. */
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
  // sqlite://data.db would be read as a file in the root folder by some and as a relative path by others.
  if (path.startsWith("//")) throw problem("must be written sqlite:PATH, without slashes before the path");
  const absolute = resolve(path);
  if (!existsSync(dirname(absolute))) throw problem(`the folder ${dirname(absolute)} does not exist`);
  return absolute;
}
