import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import type { OrganizationTables } from "../../../service/organizations/organization-rows.ts";
import type { Database } from "../database.ts";
import { pendingMigrations } from "../open-database.ts";
import { createMemoryDatabases } from "./memory-databases.ts";

test.each([
  ["copied", true],
  ["made anew where Node cannot copy one", false],
])("a second database in memory begins as the first one did, and is %s", async (_, copies) => {
  if (!copies) takeAway(DatabaseSync.prototype, "serialize");
  const fill = vi.fn((database: Database) => insert(database, "first"));
  const open = createMemoryDatabases(fill);
  const first = await open();
  await insert(first, "later");
  const second = await open();
  expect(await names(second)).toEqual(["first"]);
  expect(await pendingMigrations(second)).toEqual([]);
  await insert(second, "other");
  expect(await names(second)).toEqual(["first", "other"]);
  expect(await names(first)).toEqual(["first", "later"]);
  expect(await names(await open())).toEqual(["first"]);
  expect(fill).toHaveBeenCalledTimes(copies ? 1 : 3);
});

test("a reference to a row that is not there is refused in a copy too", async () => {
  const open = createMemoryDatabases(async () => {});
  await open();
  const copy = (await open()).$extendTables<OrganizationTables>();
  const orphan = { id: "key", organization_id: "nobody", hmac: "", scopes: "settle", created_at: 1 };
  await expect(copy.insertInto("api_keys").values(orphan).execute()).rejects.toThrow("FOREIGN KEY");
});

test("what fails while the first is filled fails the opening, and the next one begins anew", async () => {
  const fill = vi.fn().mockRejectedValueOnce(new Error("no room")).mockResolvedValue(undefined);
  const open = createMemoryDatabases(fill);
  await expect(open()).rejects.toThrow("no room");
  expect(await names(await open())).toEqual([]);
});

async function insert(database: Database, name: string): Promise<void> {
  await database
    .$extendTables<OrganizationTables>()
    .insertInto("organizations")
    .values({ id: name, name, created_at: 1 })
    .execute();
}

async function names(database: Database): Promise<string[]> {
  const organizations = database.$extendTables<OrganizationTables>().selectFrom("organizations");
  return (await organizations.select("name").orderBy("created_at").orderBy("name").execute()).map(
    ({ name }) => name,
  );
}

function takeAway(from: object, method: string): void {
  const descriptor = Object.getOwnPropertyDescriptor(from, method) ?? {};
  Reflect.deleteProperty(from, method);
  onTestFinished(() => void Object.defineProperty(from, method, descriptor));
}
