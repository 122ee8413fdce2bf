import type { Logger } from "pino";
import type { Database } from "../../database/database.ts";
import { migrate as applyMigrations } from "../../database/migrate.ts";
import { openDatabase } from "../../database/open-database.ts";
import { KitError } from "../../errors.ts";
import { describeDatabase, openAsIs } from "../doctor/database.ts";

/**
 * Opens the database, which has to be there and up to date; with `migrate` it is brought there.
 *
 * @throws KitError when it is behind, newer, or cannot be opened; with what to do about it
 */
export async function prepareDatabase(
  url: string,
  { migrate, logger }: { migrate: boolean; logger: Logger },
): Promise<Database> {
  const state = await openAsIs(url);
  if (state.kind === "ready") return state.db;
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
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}
