import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import type { Database } from "../database.ts";
import { createSqliteDialect } from "./dialect.ts";
import { newestSchema } from "./newest-schema.ts";

/**
 * Opens databases in memory at the newest schema that all begin alike. The first is filled; the others are copies of it
 * as it was then.
 *
 * @param fill puts in what each is to hold
 */
export function createMemoryDatabases(fill: (database: Database) => Promise<void>): () => Promise<Database> {
  let image: Uint8Array | undefined;
  return async () => {
    const sqlite = new DatabaseSync(":memory:");
    const database: Database = new Kysely({ dialect: createSqliteDialect(sqlite) });
    try {
      if (image !== undefined) sqlite.deserialize(image);
      else {
        sqlite.exec(newestSchema);
        await fill(database);
        // Before Node 24.16 there are no images: then each is made as the first one.
        image = sqlite.serialize?.();
      }
      return database;
    } catch (error) {
      await database.destroy();
      throw error;
    }
  };
}
