import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { openDatabase } from "./open-database.ts";

/**
 * Opens a database and brings it to the newest schema; see {@link openDatabase} for the URL.
 *
 * @throws ConfigurationError or KitError as `openDatabase` and `migrate` do; the database is closed then
 */
export async function openMigrated(url: string): Promise<Database> {
  const database = await openDatabase({ url });
  try {
    await migrate(database);
    return database;
  } catch (error) {
    await database.destroy();
    throw error;
  }
}
