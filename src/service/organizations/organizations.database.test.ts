import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import type { Database } from "../../ledger/database/database.ts";
import { networks } from "../../protocol/networks.ts";
import { createOrganizations } from "./create-organizations.ts";
import type { OrganizationTables } from "./organization-rows.ts";
import type { Organizations } from "./organizations.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const pepper = "a pepper for tests";
  const recipient = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
  const shop = { id: "shop", name: "Shop", recipients: {}, limits: {} };
  const publishedKey = `x4k_local_${"0123456789ABCDEFabcdef".repeat(2)}`;

  let time: number;
  let db: Database;
  let organizations: Organizations;
  /** Another instance on the same database. */
  let other: Organizations;

  beforeEach(async () => {
    time = 1_800_000_000_000;
    db = await database.open();
    organizations = createOrganizations({ db, pepper, now: () => time });
    other = createOrganizations({ db: await database.open(), pepper, now: () => time });
    await organizations.create({ id: "shop", name: "Shop" });
  });

  const issue = async (options: Partial<Parameters<Organizations["createKey"]>[1]> = {}) =>
    organizations.createKey("shop", { scopes: ["verify", "settle"], ...options });

  test("a pepper that the keys were not made with is noticed, and issues no key", async () => {
    expect(await organizations.checkPepper()).toBe("unknown");
    await issue();
    expect(await organizations.checkPepper()).toBe("right");
    const mistaken = createOrganizations({ db, pepper: "another pepper", now: () => time });
    expect(await mistaken.checkPepper()).toBe("wrong");
    await expect(mistaken.createKey("shop", { scopes: ["verify"] })).rejects.toThrow(
      "API_KEY_PEPPER is not the one that the API keys were made with",
    );
    expect(await organizations.listKeys("shop")).toHaveLength(1);
    expect(await mistaken.acceptPepper()).toBe(1);
    expect(await organizations.checkPepper()).toBe("wrong");
    expect(await mistaken.checkPepper()).toBe("right");
  });

  describe("an organization", () => {
    test("is found as it was created, with the recipients it has set", async () => {
      expect(await organizations.find("shop")).toEqual(shop);
      await organizations.setRecipient("shop", "base", recipient);
      await organizations.setRecipient("shop", "polygon", `0x${"11".repeat(20)}`);
      await organizations.setRecipient("shop", "polygon", `0x${"22".repeat(20)}`);
      expect(await other.find("shop")).toEqual({
        id: "shop",
        name: "Shop",
        recipients: { base: recipient, polygon: `0x${"22".repeat(20)}` },
        limits: {},
      });
      expect(await organizations.find("nobody")).toBeNull();
    });

    test("gets a drawn id unless one is given", async () => {
      const one = await organizations.create({ name: "One" });
      const two = await organizations.create({ name: "Two" });
      expect(one.id).toMatch(/^org_[0-9a-f]{16}$/);
      expect(two.id).not.toBe(one.id);
    });

    test.each<[string, () => Promise<unknown>]>([
      ["a second one of the same id", () => organizations.create({ id: "shop", name: "Again" })],
      ["a name that does not fit a table", () => organizations.create({ name: "Shop\nAdmin" })],
      ["an id that does not fit a command line", () => organizations.create({ id: "my shop", name: "" })],
      ["a recipient that is no address", () => organizations.setRecipient("shop", "base", "0x1234")],
      ["the zero address", () => organizations.setRecipient("shop", "base", `0x${"00".repeat(20)}`)],
      [
        "a mistyped wallet",
        () => organizations.setRecipient("shop", "base", "0x857b06519E91e3A54538791bDbb0E22373e36b67"),
      ],
      ["USDC as a wallet", () => organizations.setRecipient("shop", "base", networks.base.usdc.address)],
      ["a recipient of nobody", () => organizations.setRecipient("nobody", "base", recipient)],
      ["a key of nobody", () => organizations.createKey("nobody", { scopes: ["verify"] })],
      ["a key for nothing", () => issue({ scopes: [] })],
      ["a key that has expired already", () => issue({ expiresAt: time })],
      ["limits of nobody", () => organizations.setLimits("nobody", "base", { minimumAmount: 1n })],
      ["limits where nobody is paid", () => organizations.setLimits("shop", "base", { minimumAmount: 1n })],
      ["rotating a key that is not there", () => organizations.rotateKey("0123", { graceMs: 0 })],
      ["the keys of nobody", () => organizations.listKeys("nobody")],
      ["the changes of nobody", () => organizations.listChanges("nobody")],
      ["a key of another form", () => issue({ key: "sk_live_0123456789" })],
      ["revoking a key that is not there", () => organizations.revokeKey("0123")],
    ])("is refused: %s", async (_, attempt) => {
      await expect(attempt()).rejects.toMatchObject({ name: "KitError" });
      expect(await organizations.find("shop")).toEqual(shop);
    });
  });

  describe("a key", () => {
    test("speaks for its organization, with its recipients and scopes", async () => {
      await organizations.setRecipient("shop", "base", recipient);
      const { key, keyId } = await issue({ scopes: ["settle"] });
      expect(key).toMatch(/^x4k_[0-9a-f]{16}_[0-9a-f]{64}$/);
      expect(key.split("_")[1]).toBe(keyId);
      expect(await other.authenticate(key)).toEqual({
        organization: { ...shop, recipients: { base: recipient } },
        keyId,
        scopes: ["settle"],
      });
    });

    test("can be a given one", async () => {
      expect(await issue({ key: publishedKey })).toEqual({ key: publishedKey, keyId: "local" });
      expect(await organizations.authenticate(publishedKey)).toMatchObject({ keyId: "local" });
      await expect(issue({ key: publishedKey })).rejects.toThrow("There is a key with the id local already");
    });

    test("can be one of several of an organization", async () => {
      const [old, fresh] = [await issue(), await issue()];
      await organizations.revokeKey(old.keyId);
      expect(await organizations.authenticate(old.key)).toBeNull();
      expect(await organizations.authenticate(fresh.key)).toMatchObject({ organization: { id: "shop" } });
    });

    test("ends at its time", async () => {
      const { key } = await issue({ expiresAt: time + 500 });
      expect(await organizations.authenticate(key)).not.toBeNull();
      time += 499;
      expect(await organizations.authenticate(key)).not.toBeNull();
      time += 1;
      expect(await organizations.authenticate(key)).toBeNull();
    });

    test("can be revoked twice", async () => {
      const { keyId } = await issue();
      await organizations.revokeKey(keyId);
      await organizations.revokeKey(keyId);
    });
  });

  describe("no organization is authenticated by", () => {
    const right = publishedKey;
    test.each([
      ["no key at all", ""],
      ["something else", "Basic dXNlcjpwYXNz"],
      ["another prefix", right.replace("x4k", "x5k")],
      ["an unknown id", right.replace("local", "remote")],
      ["another secret", `${right.slice(0, -1)}X`],
      ["another casing", right.toUpperCase().replace("X4K", "x4k").replace("LOCAL", "local")],
      ["less than the whole", right.slice(0, -1)],
      ["more than the whole", `${right}0`],
      ["a space before", ` ${right}`],
      ["a line break after", `${right}\n`],
      ["a fourth part", `${right}_0`],
      ["much too much", right + "0".repeat(100_000)],
      ["the name of a property", "x4k_constructor_0123456789abcdef0123456789abcdef"],
    ])("%s", async (_, wrong) => {
      await issue({ key: right });
      expect(await organizations.authenticate(wrong)).toBeNull();
      expect(await organizations.authenticate(right)).not.toBeNull();
      expect(await organizations.authenticate(wrong)).toBeNull();
      // Known again without its HMAC, which nothing else is.
      expect(await organizations.authenticate(right)).not.toBeNull();
      expect(await organizations.authenticate(wrong)).toBeNull();
    });

    test("a key under another pepper", async () => {
      const { key } = await issue();
      const peppered = createOrganizations({ db, pepper: "another pepper", now: () => time });
      expect(await peppered.authenticate(key)).toBeNull();
    });
  });

  describe("a change takes effect", () => {
    test("at once where it is made", async () => {
      const { key, keyId } = await issue();
      await organizations.authenticate(key);
      await organizations.setRecipient("shop", "base", recipient);
      expect((await organizations.authenticate(key))?.organization.recipients).toEqual({ base: recipient });
      await organizations.revokeKey(keyId);
      expect(await organizations.authenticate(key)).toBeNull();
    });

    test("for a key that was tried before it was there", async () => {
      expect(await organizations.authenticate(publishedKey)).toBeNull();
      await issue({ key: publishedKey });
      expect(await organizations.authenticate(publishedKey)).not.toBeNull();
    });

    test("within a second on other instances", async () => {
      const { key, keyId } = await issue();
      expect(await other.authenticate(key)).not.toBeNull();
      await organizations.revokeKey(keyId);
      time += 1_000;
      expect(await other.authenticate(key)).toBeNull();
    });

    test("even when the clock is set back", async () => {
      const { key, keyId } = await issue();
      expect(await other.authenticate(key)).not.toBeNull();
      await organizations.revokeKey(keyId);
      time -= 3_600_000;
      expect(await other.authenticate(key)).toBeNull();
    });
  });

  test("the database holds no secret", async () => {
    const { key, keyId } = await issue();
    const stored = JSON.stringify(
      await db.$extendTables<OrganizationTables>().selectFrom("api_keys").selectAll().execute(),
    );
    expect(stored).toContain(keyId);
    expect(stored).not.toContain(key.split("_")[2]);
    expect(stored).not.toContain(pepper);
  });

  test("an empty pepper is refused", () => {
    expect(() => createOrganizations({ db, pepper: "", now: () => time })).toThrow(
      "The pepper of the API keys must not be empty",
    );
  });
});
