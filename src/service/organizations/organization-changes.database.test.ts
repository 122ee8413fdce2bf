import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import type { Database } from "../../ledger/database/database.ts";
import { createOrganizations } from "./create-organizations.ts";
import type { OrganizationTables } from "./organization-rows.ts";
import type { Organizations } from "./organizations.ts";

const pepper = "a pepper for tests";
const recipient = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const hourMs = 60 * 60 * 1000;

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let time: number;
  let db: Database;
  let organizations: Organizations;
  /** The same in another process, for another author. */
  let other: Organizations;

  beforeEach(async () => {
    time = 1_800_000_000_000;
    const now = () => time;
    db = await database.open();
    organizations = createOrganizations({ db, pepper, now, actor: "alice" });
    other = createOrganizations({ db: await database.open(), pepper, now, actor: "bob" });
    await organizations.create({ id: "shop", name: "Shop" });
  });

  const issue = () => organizations.createKey("shop", { scopes: ["verify", "settle"] });

  describe("rotating a key", () => {
    test("keeps both working until the old one expires", async () => {
      const old = await organizations.createKey("shop", { scopes: ["settle"] });
      const fresh = await organizations.rotateKey(old.keyId, { graceMs: hourMs });
      expect(fresh.oldExpiresAt).toBe(time + hourMs);
      const caller = { organization: { id: "shop" }, scopes: ["settle"] };
      expect(await other.authenticate(old.key)).toMatchObject({ ...caller, keyId: old.keyId });
      expect(await other.authenticate(fresh.key)).toMatchObject({ ...caller, keyId: fresh.keyId });
      time += hourMs;
      expect(await other.authenticate(old.key)).toBeNull();
      expect(await other.authenticate(fresh.key)).not.toBeNull();
    });

    test("does not extend the old one", async () => {
      const old = await organizations.createKey("shop", { scopes: ["settle"], expiresAt: time + 1_000 });
      const { oldExpiresAt } = await organizations.rotateKey(old.keyId, { graceMs: hourMs });
      expect(oldExpiresAt).toBe(time + 1_000);
    });

    test("ends the old one at once without a grace period", async () => {
      const old = await issue();
      await organizations.rotateKey(old.keyId, { graceMs: 0 });
      expect(await organizations.authenticate(old.key)).toBeNull();
    });

    test("is refused for a key that was rotated, revoked or has expired", async () => {
      const rotated = await issue();
      await organizations.rotateKey(rotated.keyId, { graceMs: hourMs });
      const revoked = await issue();
      await organizations.revokeKey(revoked.keyId);
      const expired = await organizations.createKey("shop", { scopes: ["verify"], expiresAt: time + 1 });
      time += 1;
      for (const { keyId } of [rotated, revoked, expired]) {
        await expect(organizations.rotateKey(keyId, { graceMs: 0 })).rejects.toThrow("cannot be rotated");
      }
      expect(await organizations.listKeys("shop")).toHaveLength(4);
    });

    test("gives one new key when two do it at once", async () => {
      const { keyId } = await issue();
      const rotations = await Promise.allSettled(
        [organizations, other].map((one) => one.rotateKey(keyId, { graceMs: hourMs })),
      );
      expect(rotations.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await organizations.listKeys("shop")).toHaveLength(2);
    });
  });

  test("keys are listed with their states, and without secrets", async () => {
    const active = await issue();
    time += 1;
    const replaced = await issue();
    const fresh = await organizations.rotateKey(replaced.keyId, { graceMs: hourMs });
    time += 1;
    const revoked = await issue();
    await organizations.revokeKey(revoked.keyId);
    time += 1;
    const expired = await organizations.createKey("shop", { scopes: ["verify"], expiresAt: time + 1 });
    time += 1;
    const listed = await organizations.listKeys("shop");
    const states = Object.fromEntries(listed.map(({ keyId, state }) => [keyId, state]));
    expect(states).toEqual({
      [active.keyId]: "active",
      [replaced.keyId]: "replaced",
      [fresh.keyId]: "active",
      [revoked.keyId]: "revoked",
      [expired.keyId]: "expired",
    });
    expect(listed.find(({ keyId }) => keyId === replaced.keyId)?.replacedBy).toBe(fresh.keyId);
    for (const { key } of [active, replaced, fresh, revoked, expired]) {
      expect(JSON.stringify(listed)).not.toContain(key.split("_")[2]);
    }
  });

  describe("limits", () => {
    beforeEach(() => organizations.setRecipient("shop", "base", recipient));

    test("are set one by one, and taken away again", async () => {
      await organizations.setLimits("shop", "base", { minimumAmount: 10_000n });
      await organizations.setLimits("shop", "base", { dailyGasBudget: 10n ** 18n });
      const both = { minimumAmount: 10_000n, dailyGasBudget: 10n ** 18n, refusePayersWithCode: false };
      expect((await other.find("shop"))?.limits).toEqual({ base: both });
      await organizations.setLimits("shop", "base", { minimumAmount: null });
      expect((await other.find("shop"))?.limits).toEqual({ base: { ...both, minimumAmount: null } });
      await organizations.setLimits("shop", "base", { dailyGasBudget: null });
      expect((await other.find("shop"))?.limits).toEqual({});
    });

    test("may refuse payers with code, on one network and until that is taken back", async () => {
      await organizations.setRecipient("shop", "polygon", recipient);
      const { key } = await issue();
      await organizations.setLimits("shop", "base", { refusePayersWithCode: true });
      await organizations.setLimits("shop", "base", { minimumAmount: 5n });
      const caller = await other.authenticate(key);
      expect(caller?.organization.limits).toEqual({
        base: { minimumAmount: 5n, dailyGasBudget: null, refusePayersWithCode: true },
      });
      await organizations.setLimits("shop", "base", { minimumAmount: null, refusePayersWithCode: false });
      expect((await other.find("shop"))?.limits).toEqual({});
      expect((await other.listChanges("shop")).slice(-3).map(({ details }) => details)).toMatchObject([
        { refusePayersWithCode: true, minimumAmount: null },
        { refusePayersWithCode: true, minimumAmount: "5" },
        { refusePayersWithCode: false, minimumAmount: null },
      ]);
    });

    test("come with the caller of a key, and stay when the recipient changes", async () => {
      const { key } = await issue();
      await organizations.setLimits("shop", "base", { minimumAmount: 2n ** 200n });
      await organizations.setRecipient("shop", "base", `0x${"11".repeat(20)}`);
      const caller = await other.authenticate(key);
      expect(caller?.organization).toMatchObject({
        recipients: { base: `0x${"11".repeat(20)}` },
        limits: { base: { minimumAmount: 2n ** 200n, dailyGasBudget: null, refusePayersWithCode: false } },
      });
    });

    test("must not be negative", async () => {
      await expect(organizations.setLimits("shop", "base", { minimumAmount: -1n })).rejects.toThrow(
        "A limit must not be negative",
      );
    });
  });

  describe("the audit trail", () => {
    test("holds every change: what, who and when", async () => {
      time += 1_000;
      await organizations.setRecipient("shop", "base", recipient);
      await other.setRecipient("shop", "base", `0x${"11".repeat(20)}`);
      time += 1_000;
      await other.setLimits("shop", "base", { minimumAmount: 10_000n });
      const { keyId } = await organizations.createKey("shop", { scopes: ["settle"] });
      const rotated = await organizations.rotateKey(keyId, { graceMs: hourMs });
      await other.revokeKey(keyId);
      const began = 1_800_000_000_000;
      expect(await other.listChanges("shop")).toEqual([
        {
          number: 1,
          at: began,
          actor: "alice",
          action: "organization created",
          details: { name: "Shop" },
        },
        {
          number: 2,
          at: began + 1_000,
          actor: "alice",
          action: "recipient set",
          details: { network: "base", from: null, to: recipient },
        },
        {
          number: 3,
          at: began + 1_000,
          actor: "bob",
          action: "recipient set",
          details: { network: "base", from: recipient, to: `0x${"11".repeat(20)}` },
        },
        {
          number: 4,
          at: began + 2_000,
          actor: "bob",
          action: "limits set",
          details: {
            network: "base",
            minimumAmount: "10000",
            dailyGasBudget: null,
            refusePayersWithCode: false,
          },
        },
        {
          number: 5,
          at: began + 2_000,
          actor: "alice",
          action: "key created",
          details: { keyId, scopes: ["settle"], expiresAt: null },
        },
        {
          number: 6,
          at: began + 2_000,
          actor: "alice",
          action: "key rotated",
          details: {
            keyId,
            expiresAt: began + 2_000 + hourMs,
            replacedBy: rotated.keyId,
            replacementExpiresAt: null,
          },
        },
        { number: 7, at: began + 2_000, actor: "bob", action: "key revoked", details: { keyId } },
      ]);
    });

    test("has no entry for what changed nothing or failed", async () => {
      await organizations.setRecipient("shop", "base", recipient);
      const { keyId } = await issue();
      await organizations.revokeKey(keyId);
      const before = await organizations.listChanges("shop");
      await organizations.setRecipient("shop", "base", recipient);
      await organizations.setLimits("shop", "base", {});
      await organizations.revokeKey(keyId);
      await organizations.createKey("shop", { scopes: [] }).catch(() => {});
      await organizations.rotateKey(keyId, { graceMs: 0 }).catch(() => {});
      await organizations.create({ id: "shop", name: "Again" }).catch(() => {});
      expect(await organizations.listChanges("shop")).toEqual(before);
    });

    test("holds no secret", async () => {
      const { key, keyId } = await issue();
      const fresh = await organizations.rotateKey(keyId, { graceMs: hourMs });
      const rows = await db.$extendTables<OrganizationTables>().selectFrom("audit").selectAll().execute();
      for (const secret of [key, fresh.key].map((one) => one.split("_")[2])) {
        expect(JSON.stringify(rows)).not.toContain(secret);
      }
    });

    test("is complete and right when many change the same at once", async () => {
      const addresses = Array.from(
        { length: 20 },
        (_, index): `0x${string}` => `0x${String(index + 10).repeat(20)}`,
      );
      await Promise.all(
        addresses.map((address, index) =>
          (index % 2 === 0 ? organizations : other).setRecipient("shop", "base", address),
        ),
      );
      const changes = (await organizations.listChanges("shop")).slice(1);
      expect(changes.map(({ number }) => number)).toEqual(addresses.map((_, index) => index + 2));
      // Each replaces what the one before it has set.
      expect(changes.map(({ details }) => details.from)).toEqual([
        null,
        ...changes.slice(0, -1).map(({ details }) => details.to),
      ]);
      expect((await organizations.find("shop"))?.recipients.base).toBe(changes.at(-1)?.details.to);
    });

    test("refuses an actor whose name could fake a line", () => {
      for (const actor of ["", "alice\nbob", "x".repeat(101), "alice\u202e"]) {
        expect(() => createOrganizations({ db, pepper, now: () => time, actor })).toThrow(
          "The actor must be 1 to 100 characters on one line",
        );
      }
    });
  });

  test("organizations are listed, oldest first", async () => {
    time += 1;
    await other.create({ id: "bakery", name: "Bakery" });
    await other.setRecipient("bakery", "polygon", recipient);
    expect(await organizations.list()).toEqual([
      { id: "shop", name: "Shop", recipients: {}, limits: {} },
      { id: "bakery", name: "Bakery", recipients: { polygon: recipient }, limits: {} },
    ]);
  });

  test("a revoked key stops working on every instance within five seconds", async () => {
    let time = Date.now();
    const now = () => time;
    const here = createOrganizations({ db, pepper, now });
    const there = createOrganizations({ db: await database.open(), pepper, now });
    const { key, keyId } = await here.createKey("shop", { scopes: ["verify"] });
    expect(await there.authenticate(key)).not.toBeNull();
    await here.revokeKey(keyId);
    // Asked all the time, as under load, so that it is always remembered.
    for (const end = time + 5_000; time < end; time += 10) {
      if ((await there.authenticate(key)) === null) break;
    }
    expect(await there.authenticate(key)).toBeNull();
  });
});
