import { KitError } from "../../util/errors.ts";
import type { Database } from "./database.ts";
import { isFileGone } from "./sqlite/open-sqlite.ts";

/** The row that the check writes, among the marks of commits: every database has the table. */
const mark = "write check";

/** How long an answer waits for the write, in milliseconds. */
const answerTimeoutMs = 1_000;
/** A write may wait for others for this long, as it does behind a slow remote signer, before that is a problem. */
const queueTimeoutMs = 15_000;

/**
 * Creates a check whether a database takes writes, and keeps them. With a full disk, or a file that has become read-only, it
 * does not, and every payment would be refused. The check writes one row, always the same. It resolves with what is wrong, in words
 * that may be shown to callers, or with null; it never throws.
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
    // Nothing was written while nothing was asked: that says nothing.
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
