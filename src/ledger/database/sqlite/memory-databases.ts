import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import type { Database } from "../database.ts";
import { inTransaction } from "../transactions.ts";
import { newestSchema } from "./newest-schema.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";

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

/** A row of some table. */
type Row = Readonly<Record<string, string | number | null>>;

/** Everything that an SQLite database holds, by table. */
export type Rows = Readonly<Record<string, readonly Row[]>>;

/** Below SQLite's bound of parameters, whatever the table. */
const rowsAtOnce = 50;

/** Reads all rows of an SQLite database, the record of its migrations aside. */
export async function readRows(db: Database): Promise<Rows> {
  const { rows: tables } = await sql<{ name: string }>`
    SELECT name FROM sqlite_master
    WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT LIKE '%migration%'
  `.execute(db);
  const read: Record<string, readonly Row[]> = {};
  for (const { name } of tables) {
    read[name] = (await sql<Row>`SELECT * FROM ${sql.table(name)}`.execute(db)).rows;
  }
  return read;
}

/** Adds rows to an SQLite database of the same schema. What is there already under the same key stays as it is. */
export async function addRows(db: Database, rows: Rows): Promise<void> {
  await inTransaction(db, async (transaction) => {
    // Tables come in any order.
    await sql`PRAGMA defer_foreign_keys = ON`.execute(transaction);
    for (const [table, all] of Object.entries(rows)) {
      const columns = Object.keys(all[0] ?? {});
      for (let from = 0; from < all.length; from += rowsAtOnce) {
        const values = all
          .slice(from, from + rowsAtOnce)
          .map((row) => sql`(${sql.join(columns.map((column) => row[column] ?? null))})`);
        await sql`
          INSERT OR IGNORE INTO ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))})
          VALUES ${sql.join(values)}
        `.execute(transaction);
      }
    }
  });
}
