import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "./database.ts";
import { migrate, pendingMigrations } from "./migrate.ts";
import { openDatabase } from "./open-database.ts";

let folder: string;
let db: Database;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-migrate-"));
  db = await openDatabase({ url: `sqlite:${join(folder, "test.db")}` });
});
afterEach(async () => {
  await db.destroy();
  rmSync(folder, { recursive: true });
});

test("says what is pending without doing it", async () => {
  expect(await pendingMigrations(db)).toEqual(["0001-initial"]);
  expect(await db.introspection.getTables({ withInternalKyselyTables: true })).toEqual([]);
});

test("applies what is pending once", async () => {
  expect(await migrate(db)).toEqual(["0001-initial"]);
  expect(await pendingMigrations(db)).toEqual([]);
  expect(await migrate(db)).toEqual([]);
});

test("may be run by several processes at once", async () => {
  const others = await Promise.all(
    Array.from({ length: 4 }, () => openDatabase({ url: `sqlite:${join(folder, "test.db")}` })),
  );
  const applied = await Promise.all([db, ...others].map((one) => migrate(one)));
  await Promise.all(others.map((one) => one.destroy()));
  expect(applied.flat()).toEqual(["0001-initial"]);
});

test("leaves nothing half done when a migration fails", async () => {
  // The last table of the migration is there already, of somebody else.
  await db.schema.createTable("api_keys").addColumn("id", "text").execute();
  await expect(migrate(db)).rejects.toThrowErrorMatchingInlineSnapshot(
    `[KitError: The migration 0001-initial failed; nothing was changed]`,
  );
  const tables = await db.introspection.getTables();
  expect(tables.map(({ name }) => name)).toEqual(["api_keys"]);
});

test("refuses a database that a newer version migrated", async () => {
  await migrate(db);
  await db
    .$extendTables<{ kysely_migration: { name: string; timestamp: string } }>()
    .insertInto("kysely_migration")
    .values({ name: "0099-future", timestamp: "2099-01-01T00:00:00.000Z" })
    .execute();
  await expect(pendingMigrations(db)).rejects.toThrowErrorMatchingInlineSnapshot(
    `[KitError: The database is newer than this software: it has the migration 0099-future]`,
  );
  await expect(migrate(db)).rejects.toThrow("0099-future");
});
