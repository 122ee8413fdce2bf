import type { Database } from "../../src/ledger/database/database.ts";
import { migrate, openDatabase } from "../../src/ledger/database/open-database.ts";

/** Opens a database by its URL and migrates it to the newest schema. If that fails, the database is closed. */
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
