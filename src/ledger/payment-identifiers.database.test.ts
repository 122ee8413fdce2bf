import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  createTestLedger,
  hashOf,
  hours,
  openTestLedger,
  paymentOf,
  type TestClock,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  let other: TestLedger;
  beforeEach(async () => {
    ({ clock, ledger } = await openTestLedger(database, 7));
    other = createTestLedger(await database.open(), clock.now, { instanceId: "instance-2" });
  });

  const named = (name: string, id = "order") =>
    paymentOf(name, { identifier: { id, fingerprint: hashOf(name) } });

  test("of two payments of one identifier, one is claimed, in one transaction or in two", async () => {
    expect((await ledger.claimAll([named("a"), named("b"), named("c", "another")])).outcomes).toEqual([
      "claimed",
      "identifier_reused",
      "claimed",
    ]);
    expect((await other.claimAll([named("d")])).outcomes).toEqual(["identifier_reused"]);
    expect(await ledger.find(named("d").id)).toBeNull();
    expect(await other.findIdentifier("org_shop", "order")).toBe(hashOf("a"));
  });

  test("instances that claim two payments of one identifier at once claim one of them", async () => {
    const results = await Promise.all([ledger.claimAll([named("a")]), other.claimAll([named("b")])]);
    expect(results.flatMap(({ outcomes }) => outcomes).sort()).toEqual(["claimed", "identifier_reused"]);
  });

  test("the identifier of one organization is not that of another", async () => {
    await ledger.claimAll([named("a")]);
    const rival = { ...named("b"), organizationId: "rival" };
    expect((await ledger.claimAll([rival])).outcomes).toEqual(["claimed"]);
  });

  test("what was refused has no identifier: another payment may take it", async () => {
    const poor = { ...named("a"), balance: 0n };
    expect((await ledger.claimAll([poor])).outcomes).toEqual(["over_balance"]);
    expect(await ledger.findIdentifier("org_shop", "order")).toBeNull();
    expect((await ledger.claimAll([named("b")])).outcomes).toEqual(["claimed"]);
  });

  test("when signing fails, nothing is bound", async () => {
    const failing = ledger.claimAll([named("a")], () => Promise.reject(new Error("the signer is down")));
    await expect(failing).rejects.toThrow("the signer is down");
    expect(await ledger.findIdentifier("org_shop", "order")).toBeNull();
  });

  test("is free again after a day, as keys are", async () => {
    await ledger.claimAll([named("a")]);
    clock.advance(24 * hours - 1);
    expect((await ledger.claimAll([named("b")])).outcomes).toEqual(["identifier_reused"]);
    clock.advance(1);
    expect(await ledger.findIdentifier("org_shop", "order")).toBeNull();
    expect((await ledger.claimAll([named("c")])).outcomes).toEqual(["claimed"]);
  });

  test("has nothing to do with an Idempotency-Key of the same text", async () => {
    await ledger.claimAll([named("a")]);
    expect(await ledger.beginIdempotent("org_shop", "order", "body")).toEqual({ status: "new" });
  });
});
