import type { Logger } from "pino";
import { migrate as applyMigrations } from "../../database/migrate.ts";
import { openDatabase } from "../../database/open-database.ts";
import { KitError } from "../../errors.ts";
import { describeDatabase, openAsIs } from "../doctor/database.ts";

/**
 * Makes sure that the database is there and up to date; brings it there when it is told to.
 *
 * @throws KitError when it is behind, newer, or cannot be opened; with what to do about it
 */
export async function prepareDatabase(
  url: string,
  { migrate, logger }: { migrate: boolean; logger: Logger },
): Promise<void> {
  const state = await openAsIs(url);
  if (state.kind === "ready") {
    await state.db.destroy();
    return;
  }
  if (state.kind === "unreadable" || !migrate) {
    const { detail, advice } = describeDatabase(url, state);
    throw new KitError(`The database cannot be used: ${detail}`, {
      hints: advice === undefined ? [] : [advice],
    });
  }
  const db = await openDatabase({ url });
  try {
    const applied = await applyMigrations(db);
    logger.info({ migrations: applied.map(({ name }) => name) }, "the database was brought up to date");
  } finally {
    await db.destroy();
  }
}
