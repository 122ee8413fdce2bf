import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../database/migrate.ts";
import { openDatabase } from "../database/open-database.ts";
import { type TestKeyName, testKeys } from "../published/test-keys.ts";
import { type OpenOrganizations, openOrganizations } from "./open-organizations.ts";

/* The API keys that everybody knows must open no organization of a real deployment. */

let directory: string;
let organizations: OpenOrganizations;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-keys-"));
  const databaseUrl = `sqlite:${join(directory, "ledger.sqlite")}`;
  const db = await openDatabase({ url: databaseUrl });
  await migrate(db);
  await db.destroy();
  const pepper = "a pepper for tests, of 32 characters and more";
  organizations = await openOrganizations({ databaseUrl, pepper, actor: "a test" });
  await organizations.create({ id: "shop", name: "A shop" });
});
afterAll(async () => {
  await organizations?.close();
  await rm(directory, { recursive: true });
});

test.each(Object.keys(testKeys) as TestKeyName[])("the published key %s is refused", async (name) => {
  const { apiKey, scopes } = testKeys[name];
  await expect(organizations.createKey("shop", { scopes, key: apiKey })).rejects.toThrow("is no secret");
  expect(await organizations.authenticate(apiKey)).toBeNull();
});

test("a key that was drawn elsewhere can be brought along", async () => {
  const key = "x4k_theirs_b1946ac92492d2347c6235b4d2611184";
  await organizations.createKey("shop", { scopes: ["verify"], key });
  expect(await organizations.authenticate(key)).toMatchObject({ scopes: ["verify"] });
});
