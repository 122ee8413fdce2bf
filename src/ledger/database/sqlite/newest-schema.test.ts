import { sql } from "kysely";
import { expect, test } from "vitest";
import { openMigrated } from "../../../../test/support/open-migrated.ts";

test("the schema of databases in memory is what the migrations make, in their order", async () => {
  const database = await openMigrated("sqlite::memory:");
  const { rows } = await sql<{ sql: string }>`
    SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid
  `.execute(database);
  const { rows: names } = await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(database);
  await database.destroy();
  const applied = names.map(({ name }) => `('${name}', strftime('%FT%TZ'))`).join(", ");
  const statements = [
    "BEGIN",
    ...rows.map((row) => row.sql),
    `INSERT INTO kysely_migration VALUES ${applied}`,
    "INSERT INTO kysely_migration_lock VALUES ('migration_lock', 0)",
    "COMMIT",
  ];
  // Updated by: npx vitest run src/ledger/database/sqlite/newest-schema.test.ts -u
  await expect(`/**
 * The schema after all migrations, for an empty SQLite database. Applying them one by one takes 25 ms of each start.
 * Written by newest-schema.test.ts.
 */
export const newestSchema = \`
${statements.join(";\n")};
\`;
`).toMatchFileSnapshot("newest-schema.ts");
});
