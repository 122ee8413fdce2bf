import { type BigIntStats, statSync } from "node:fs";
import type { Database } from "../database.ts";

/** The files of open databases, as they were when they were opened. */
const files = new WeakMap<Database, { path: string; opened: BigIntStats }>();

/** Remembers which file a database was opened from. */
export function rememberFile(database: Database, path: string): void {
  const opened = statusOf(path);
  if (opened !== undefined) files.set(database, { path, opened });
}

/**
 * Whether the file that an open database writes to is no longer at its path: it was removed, moved or replaced. SQLite goes on
 * writing to it, and does not say so. False where no file was remembered.
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
