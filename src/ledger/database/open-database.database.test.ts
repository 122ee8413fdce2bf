import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import type { Database } from "./database.ts";
import { migrate, pendingMigrations, requireMigrated } from "./open-database.ts";

const all = [
  "0001-initial",
  "0002-operations",
  "0003-listings",
  "0004-pepper",
  "0005-resources",
  "0006-payers",
  "0007-payer-code",
  "0008-methods",
  "0009-pay-to",
  "0010-permit2",
  "0011-gifts",
  "0012-gift-organizations",
  "0013-contracts",
  "0014-channels",
];

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend, { migrated: false });
  let db: Database;
  beforeEach(async () => {
    db = await database.open();
  });
  const namesOf = (migrations: readonly { name: string }[]) => migrations.map(({ name }) => name);

  test("says what is pending without doing it", async () => {
    const pending = await pendingMigrations(db);
    expect(namesOf(pending)).toEqual(all);
    expect(pending.every(({ summary }) => summary.length > 0)).toBe(true);
    expect(await db.introspection.getTables({ withInternalKyselyTables: true })).toEqual([]);
  });

  test("applies what is pending once", async () => {
    expect(namesOf(await migrate(db))).toEqual(all);
    expect(await pendingMigrations(db)).toEqual([]);
    expect(await migrate(db)).toEqual([]);
  });

  test("may be run by several processes at once", async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => database.open()));
    const applied = await Promise.all([db, ...others].map((one) => migrate(one)));
    expect(namesOf(applied.flat())).toEqual(all);
  });

  test("leaves nothing half done when a migration fails", async () => {
    // The last table of the first migration is there already, of another program.
    await db.schema.createTable("api_keys").addColumn("id", "text").execute();
    await expect(migrate(db)).rejects.toThrowErrorMatchingInlineSnapshot(
      `[KitError: The migration 0001-initial failed; nothing was changed]`,
    );
    const tables = await db.introspection.getTables();
    expect(tables.map(({ name }) => name)).toEqual(["api_keys"]);
  });

  test("refuses a database that is behind, and says how to migrate it", async () => {
    const refusal = await requireMigrated(db).catch((error) => error);
    expect(refusal.message).toMatchInlineSnapshot(
      `"The database is behind this version: it lacks 0001-initial, 0002-operations, 0003-listings, 0004-pepper, 0005-resources, 0006-payers, 0007-payer-code, 0008-methods, 0009-pay-to, 0010-permit2, 0011-gifts, 0012-gift-organizations, 0013-contracts, 0014-channels"`,
    );
    expect(refusal.hints).toMatchInlineSnapshot(`
      [
        "Make a backup, stop whatever else uses the database, and run: npx --no-install x402-kit migrate",
      ]
    `);
    await migrate(db);
    await requireMigrated(db);
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
    await expect(requireMigrated(db)).rejects.toThrow("0099-future");
  });
});
