import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate, openDatabase } from "../../ledger/database/open-database.ts";
import { type TestKeyName, testKeys } from "../../payer/test-keys.ts";
import { networkNames, networks } from "../../protocol/networks.ts";
import { type OpenOrganizations, openOrganizations } from "./open-organizations.ts";

/** As `openssl rand -hex 32` gives it. */
const pepper = "b5d1f7c09e3a48627c1bd05fe9a84f36d72e6c0b91f8a35d4e07c2b96f1a83de";

let directory: string;
let databaseUrl: string;
let organizations: OpenOrganizations;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-keys-"));
  databaseUrl = `sqlite:${join(directory, "ledger.sqlite")}`;
  const db = await openDatabase({ url: databaseUrl });
  await migrate(db);
  await db.destroy();
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

test("a key that was drawn elsewhere can be imported", async () => {
  const key = "x4k_theirs_b1946ac92492d2347c6235b4d2611184";
  await organizations.createKey("shop", { scopes: ["verify"], key });
  expect(await organizations.authenticate(key)).toMatchObject({ scopes: ["verify"] });
});

describe("a network that nothing knows is refused, instead of stored for payments that never come", () => {
  const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
  const refusal = `network: "bsae" is not one of ${networkNames.join(", ")}; others are known with the option addedNetworks`;

  test("as that of a recipient", async () => {
    await expect(organizations.setRecipient("shop", "bsae", wallet)).rejects.toThrow(refusal);
    expect((await organizations.find("shop"))?.recipients).toEqual({});
  });

  test("as that of limits", async () => {
    await expect(organizations.setLimits("shop", "bsae", { minimumAmount: 1n })).rejects.toThrow(refusal);
  });

  test("and taken when it is named as one of serve's", async () => {
    const addedNetworks = [{ ...networks.base, name: "gnosis", chainId: 100, caip2: "eip155:100" } as const];
    await using another = await openOrganizations({ databaseUrl, pepper, actor: "a test", addedNetworks });
    await another.setRecipient("shop", "gnosis", wallet);
    expect((await another.find("shop"))?.recipients).toEqual({ gnosis: wallet });
  });
});

describe("a pepper that serve would refuse is refused, as keys issued with it would work nowhere", () => {
  test.each([
    ["too-short", "The pepper has 9 characters; it needs 32 or more"],
    ["ab".repeat(20), "The pepper repeats a few characters; it must be random"],
    ["the secret pepper of our production, 2026", "The pepper holds guessable words; it must be random"],
  ])("%s", async (weak, message) => {
    await expect(openOrganizations({ databaseUrl, pepper: weak, actor: "a test" })).rejects.toThrow(message);
  });
});

test("a database URL that serve would refuse is refused, without its password", async () => {
  const url = "postgres://pay:p@HUNTER2/w@host/db";
  const error = await openOrganizations({ databaseUrl: url, pepper, actor: "a test" }).catch(
    (error) => error,
  );
  expect(error.message).toContain("The database URL has an @ behind its host");
  expect(`${error.message} ${error.stack}`).not.toContain("HUNTER2");
});
