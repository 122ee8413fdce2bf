import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  addressOf,
  asset,
  chainId,
  createTestLedger,
  failed,
  hashOf,
  hours,
  openTestLedger,
  operator,
  paymentOf,
  settled,
  signAsIf,
  type TestClock,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";
import type { Database } from "./database/database.ts";
import type { LedgerTables } from "./rows.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let db: Database;
  let clock: TestClock;
  let ledger: TestLedger;
  beforeEach(async () => {
    ({ db, clock, ledger } = await openTestLedger(database, 7));
  });

  describe("a claimed payment", () => {
    test("is found with all that was said of it", async () => {
      const payment = paymentOf("a", { amount: 2n ** 256n - 1n, balance: 2n ** 256n - 1n });
      const { outcomes, attempt } = await ledger.claimAll([payment]);
      expect(outcomes).toEqual(["claimed"]);
      expect(attempt).toEqual({
        ...(await signAsIf(7)),
        chainId,
        kind: "settle",
        operator: operator.toLowerCase(),
        txNonce: 7,
        createdAt: clock.now(),
      });
      const { balance, balanceBlock, ...claim } = payment;
      expect(await ledger.find(payment.id)).toEqual({
        ...claim,
        asset: asset.toLowerCase(),
        nonceSpace: asset.toLowerCase(),
        state: "submitted",
        operator: operator.toLowerCase(),
        txNonce: 7,
        transactionHash: hashOf("transaction 7"),
        blockNumber: null,
        blockHash: null,
        failure: null,
        claimedBlock: balanceBlock,
        claimedAt: clock.now(),
        concludedAt: null,
        deliveredAt: null,
      });
    });

    test("is still there after a restart, with its transaction", async () => {
      const payments = [paymentOf("a"), paymentOf("b")];
      const { attempt } = await ledger.claimAll(payments);
      const before = await Promise.all(payments.map(({ id }) => ledger.find(id)));
      await db.destroy();

      db = await database.open();
      const restarted = createTestLedger(db, clock.now, { instanceId: "instance-2" });
      expect(await Promise.all(payments.map(({ id }) => restarted.find(id)))).toEqual(before);
      expect(await restarted.openAttempts(chainId, operator)).toEqual([
        { attempt, settlements: expect.arrayContaining(before) },
      ]);
    });

    test("is found under its id in any casing, and nothing under another", async () => {
      const payment = paymentOf("a");
      await ledger.claimAll([payment]);
      expect(await ledger.find(`0x${payment.id.slice(2).toUpperCase()}`)).toMatchObject({ id: payment.id });
      expect(await ledger.find(hashOf("unknown"))).toBeNull();
    });

    test("is taken for every later claim", async () => {
      await ledger.claimAll([paymentOf("a")]);
      const again = await ledger.claimAll([paymentOf("a", { organizationId: "org_other" }), paymentOf("b")]);
      expect(again.outcomes).toEqual(["taken", "claimed"]);
      expect(await ledger.find(paymentOf("a").id)).toMatchObject({ organizationId: "org_shop", txNonce: 7 });
    });

    test("is taken for a second request of the same call", async () => {
      const { outcomes } = await ledger.claimAll([
        paymentOf("a"),
        paymentOf("a", { organizationId: "other" }),
      ]);
      expect(outcomes).toEqual(["claimed", "taken"]);
    });

    test("cannot get a second entry under another id", async () => {
      await ledger.claimAll([paymentOf("a")]);
      const miscomputed = paymentOf("a", {
        id: hashOf("another id"),
        asset: asset.toLowerCase() as `0x${string}`,
      });
      await expect(ledger.claimAll([miscomputed])).rejects.toThrow(backend.duplicate);
    });
  });

  describe("the signer", () => {
    test("gets only what may be claimed, as it was given", async () => {
      const payments = [paymentOf("a"), paymentOf("b", { amount: 95n }), paymentOf("c")];
      const seen: unknown[] = [];
      await ledger.claimAll(payments, (txNonce, claimable) => {
        seen.push(txNonce, ...claimable);
        return signAsIf(txNonce);
      });
      expect(seen).toEqual([7, payments[0], payments[2]]);
    });

    test("is not asked, and no txNonce taken, when nothing may be claimed", async () => {
      const never = () => Promise.reject(new Error("asked to sign"));
      const over = paymentOf("a", { amount: 101n });
      expect(await ledger.claimAll([over], never)).toEqual({ outcomes: ["over_balance"], attempt: null });
      expect(await ledger.claimAll([], never)).toEqual({ outcomes: [], attempt: null });
      const { attempt } = await ledger.claimAll([paymentOf("b")]);
      expect(attempt?.txNonce).toBe(7);
    });

    test("that fails leaves nothing behind, not even a gap between txNonces", async () => {
      const failing = ledger.claimAll([paymentOf("a")], () => Promise.reject(new Error("signer is away")));
      await expect(failing).rejects.toThrow("signer is away");
      expect(await ledger.find(paymentOf("a").id)).toBeNull();
      expect(await ledger.openAttempts(chainId, operator)).toEqual([]);
      const { outcomes, attempt } = await ledger.claimAll([paymentOf("a")]);
      expect(outcomes).toEqual(["claimed"]);
      expect(attempt?.txNonce).toBe(7);
    });

    test("that gives a transaction which is stored already is refused, and nothing changes", async () => {
      await ledger.claimAll([paymentOf("a")]);
      await expect(ledger.claimAll([paymentOf("b")], () => signAsIf(7))).rejects.toThrow(backend.duplicate);
      expect(await ledger.find(paymentOf("b").id)).toBeNull();
      expect((await ledger.claimAll([paymentOf("b")])).attempt?.txNonce).toBe(8);
    });

    test("may take its time: the next claim waits", async () => {
      const order: string[] = [];
      await Promise.all([
        ledger.claimAll([paymentOf("a")], async (txNonce) => {
          await delay(20);
          order.push(`signed ${txNonce}`);
          return signAsIf(txNonce);
        }),
        ledger.claimAll([paymentOf("b")], async (txNonce) => {
          order.push(`signed ${txNonce}`);
          return signAsIf(txNonce);
        }),
      ]);
      expect(order).toEqual(["signed 7", "signed 8"]);
    });
  });

  describe("an operator", () => {
    test("starts at its first txNonce, however often it is introduced", async () => {
      await ledger.introduce(100);
      expect((await ledger.claimAll([paymentOf("a")])).attempt?.txNonce).toBe(7);
    });

    test("counts by itself on each chain", async () => {
      await ledger.introduceOperator(10, operator, 3);
      const { attempt } = await ledger.claim(
        { chainId: 10, address: operator, maxUnmined: 16 },
        [paymentOf("a", { chainId: 10, network: "optimism", id: hashOf("id on optimism") })],
        async () => ({ ...(await signAsIf(3)), hash: hashOf("on optimism") }),
      );
      expect(attempt).toMatchObject({ chainId: 10, txNonce: 3 });
      expect((await ledger.claimAll([paymentOf("a")])).attempt?.txNonce).toBe(7);
    });

    test("that was not introduced cannot claim", async () => {
      const stranger = { chainId, address: addressOf(99), maxUnmined: 16 };
      await expect(
        ledger.claim(stranger, [paymentOf("a")], signAsIf),
      ).rejects.toThrowErrorMatchingInlineSnapshot(
        `[KitError: The operator 0x0000000000000000000000000000000000000063 was not introduced on chain 8453]`,
      );
      expect(await ledger.find(paymentOf("a").id)).toBeNull();
    });

    test("cannot claim what is on another chain", async () => {
      const elsewhere = paymentOf("a", { chainId: 10 });
      await expect(ledger.claimAll([elsewhere])).rejects.toThrowErrorMatchingInlineSnapshot(
        `[KitError: Only payments on chain 8453 can be claimed with its operator]`,
      );
    });
  });

  describe("a balance", () => {
    test("backs no more than it holds, however many claim at once", async () => {
      const claims = await Promise.all(
        Array.from({ length: 200 }, (_, index) => ledger.claimAll([paymentOf(index, { amount: 3n })])),
      );
      const outcomes = claims.flatMap((claim) => claim.outcomes);
      expect(outcomes.filter((outcome) => outcome === "claimed")).toHaveLength(33);
      expect(outcomes.filter((outcome) => outcome === "over_balance")).toHaveLength(167);
      const txNonces = claims.flatMap(({ attempt }) => attempt?.txNonce ?? []);
      expect(txNonces.sort((a, b) => a - b)).toEqual(Array.from({ length: 33 }, (_, index) => 7 + index));
    });

    test("is shared by two services on one database", async () => {
      const otherDb = await database.open();
      const other = createTestLedger(otherDb, clock.now, { instanceId: "instance-2" });
      const claims = await Promise.all(
        Array.from({ length: 200 }, (_, index) =>
          // Each payment is sent to both: one of them may have it.
          [ledger, other].map((one) => one.claimAll([paymentOf(index, { amount: 3n })])),
        ).flat(),
      );
      const outcomes = claims.flatMap((claim) => claim.outcomes);
      expect(outcomes.filter((outcome) => outcome === "claimed")).toHaveLength(33);
      expect(outcomes.filter((outcome) => outcome === "taken").length).toBeGreaterThan(0);
      const txNonces = claims.flatMap(({ attempt }) => attempt?.txNonce ?? []);
      expect(txNonces.sort((a, b) => a - b)).toEqual(Array.from({ length: 33 }, (_, index) => 7 + index));
    });

    test("is counted per payer and asset, whatever their casing", async () => {
      const otherAsset = addressOf(0xa55e7);
      const { outcomes } = await ledger.claimAll([
        paymentOf("a", { amount: 60n }),
        paymentOf("b", { amount: 60n, payer: 2 }),
        paymentOf("c", { amount: 60n, asset: otherAsset }),
        paymentOf("d", { amount: 60n, asset: asset.toLowerCase() as `0x${string}` }),
      ]);
      expect(outcomes).toEqual(["claimed", "claimed", "claimed", "over_balance"]);
    });

    test("is free again when a settlement failed", async () => {
      await ledger.claimAll([paymentOf("a", { amount: 100n })]);
      expect((await ledger.claimAll([paymentOf("b")])).outcomes).toEqual(["over_balance"]);
      await ledger.mine(7, [failed(paymentOf("a"))]);
      expect((await ledger.claimAll([paymentOf("b")])).outcomes).toEqual(["claimed"]);
    });

    test("that was read before a settlement was mined must be read again", async () => {
      await ledger.claimAll([paymentOf("a", { amount: 100n })]);
      await ledger.mine(7, [settled(paymentOf("a"))], 60n);
      const outcomeAt = async (balanceBlock: bigint, balance: bigint) =>
        (await ledger.claimAll([paymentOf("b", { balanceBlock, balance })])).outcomes[0];
      expect(await outcomeAt(59n, 100n)).toBe("stale_balance");
      expect(await outcomeAt(60n, 0n)).toBe("over_balance");
      expect(await outcomeAt(60n, 10n)).toBe("claimed");
    });
  });

  describe("a mined transaction", () => {
    const a = paymentOf("a");
    const b = paymentOf("b");
    const c = paymentOf("c");
    const payments = [a, b, c];

    beforeEach(async () => {
      await ledger.claimAll(payments);
    });

    test("concludes its settlements, each in its way", async () => {
      clock.advance(2_000);
      await ledger.mine(7, [settled(a), failed(b, "first reason"), failed(c, "second reason")], 61n);
      const mined = {
        transactionHash: hashOf("transaction 7"),
        blockNumber: 61n,
        blockHash: hashOf("block 61"),
        concludedAt: clock.now(),
        claimedAt: clock.now() - 2_000,
        deliveredAt: null,
      };
      expect(await ledger.find(a.id)).toMatchObject({ ...mined, state: "settled", failure: null });
      expect(await ledger.find(b.id)).toMatchObject({ ...mined, state: "failed", failure: "first reason" });
      expect(await ledger.find(c.id)).toMatchObject({ ...mined, state: "failed", failure: "second reason" });
      expect(await ledger.openAttempts(chainId, operator)).toEqual([]);
    });

    test("may be recorded twice", async () => {
      await ledger.mine(7, payments.map(settled));
      const before = await Promise.all(payments.map(({ id }) => ledger.find(id)));
      clock.advance(5_000);
      await ledger.mine(7, payments.map(settled));
      await ledger.mine(
        7,
        payments.map((payment) => failed(payment)),
        99n,
      );
      expect(await Promise.all(payments.map(({ id }) => ledger.find(id)))).toEqual(before);
    });

    test("closes the other transactions of its txNonce too", async () => {
      // A replacement with more fee, as a relayer signs it when the first one is not mined.
      const attempts = db.$extendTables<LedgerTables>();
      const [first] = await attempts.selectFrom("attempts").selectAll().execute();
      if (first === undefined) throw new Error("no attempt");
      await attempts
        .insertInto("attempts")
        .values({ ...first, hash: hashOf("replacement"), created_at: first.created_at + 1 })
        .execute();
      const open = await ledger.openAttempts(chainId, operator);
      expect(open.map(({ attempt }) => attempt.hash)).toEqual([first.hash, hashOf("replacement")]);
      expect(open.map(({ settlements }) => settlements.length)).toEqual([3, 3]);

      const mined = { chainId, operator, txNonce: 7, hash: hashOf("replacement") };
      for (let time = 1; time <= 2; time++) {
        await ledger.conclude(
          { ...mined, blockNumber: 61n, blockHash: hashOf("block 61") },
          payments.map(settled),
        );
        expect(await ledger.openAttempts(chainId, operator)).toEqual([]);
        expect(await ledger.find(a.id)).toMatchObject({ transactionHash: hashOf("replacement") });
        const states = await attempts.selectFrom("attempts").select(["hash", "state"]).execute();
        expect(new Map(states.map(({ hash, state }) => [hash, state]))).toEqual(
          new Map([
            [first.hash, "superseded"],
            [hashOf("replacement"), "mined"],
          ]),
        );
      }
    });

    test("must account for all of its settlements, and for no others", async () => {
      await ledger.claimAll([paymentOf("d")]);
      await expect(ledger.mine(7, [settled(a), settled(b)])).rejects.toThrow(
        `also decides settlement ${c.id}`,
      );
      await expect(ledger.mine(7, [...payments, paymentOf("d")].map(settled))).rejects.toThrow(
        "is not in the transaction with txNonce 7",
      );
      expect(await ledger.find(a.id)).toMatchObject({ state: "submitted" });
      expect(await ledger.openAttempts(chainId, operator)).toHaveLength(2);
    });

    test("leaves the others open, in the order of their txNonces", async () => {
      await ledger.claimAll([paymentOf("d")]);
      await ledger.claimAll([paymentOf("e")]);
      await ledger.mine(8, [settled(paymentOf("d"))]);
      const open = await ledger.openAttempts(chainId, operator);
      expect(open.map(({ attempt }) => attempt.txNonce)).toEqual([7, 9]);
      expect(open.map(({ settlements }) => settlements.length)).toEqual([3, 1]);
      expect(await ledger.openAttempts(chainId, addressOf(99))).toEqual([]);
    });
  });
});

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
