import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import type { Database } from "../database.ts";
import { inTransaction } from "../transactions.ts";
import { newestSchema } from "./newest-schema.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";

/**
 * Opens in-memory databases at the newest schema that all start with the same content. The first one is filled; the
 * others are copies of it.
 *
 * @param fill adds the initial content
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
        // Node before 24.16 has no `serialize`; there, every database is filled.
        image = sqlite.serialize?.();
      }
      return database;
    } catch (error) {
      await database.destroy();
      throw error;
    }
  };
}

type Row = Readonly<Record<string, string | number | null>>;

/** The content of an SQLite database, by table. */
export type Rows = Readonly<Record<string, readonly Row[]>>;

/** Keeps an insert below SQLite's limit of parameters, for every table. */
const rowsAtOnce = 50;

/** Reads all rows of an SQLite database, except the record of its migrations. */
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

/** Adds rows to an SQLite database of the same schema. Existing rows with the same key are kept. */
export async function addRows(db: Database, rows: Rows): Promise<void> {
  await inTransaction(db, async (transaction) => {
    // The tables may come in any order.
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
