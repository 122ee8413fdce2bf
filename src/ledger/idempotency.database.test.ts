import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  createClock,
  createTestLedger,
  hashOf,
  hours,
  seconds,
} from "../../test/support/ledger/test-ledger.ts";
import type { Database } from "./database/database.ts";
import { UnansweredError } from "./database/transactions.ts";
import type { LedgerTables } from "./rows.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const leaseMs = 30 * seconds;

  let db: Database;
  let clock: ReturnType<typeof createClock>;
  let ledger: ReturnType<typeof createTestLedger>;
  let other: ReturnType<typeof createTestLedger>;

  beforeEach(async () => {
    db = await database.open();
    clock = createClock();
    ledger = createTestLedger(db, clock.now, { leaseMs });
    other = createTestLedger(await database.open(), clock.now, { leaseMs, instanceId: "instance-2" });
  });

  const begin = (one = ledger, body = "body", key = "key", organization = "shop") =>
    one.beginIdempotent(organization, key, body);

  const answer = (one: typeof ledger, text: string) =>
    one.answerIdempotent({ organizationId: "shop", key: "key", answer: text });

  describe("a key", () => {
    test("is new once", async () => {
      const entries = await Promise.all(
        Array.from({ length: 20 }, (_, index) => begin(index % 2 === 0 ? ledger : other)),
      );
      expect(entries.filter(({ status }) => status === "new")).toHaveLength(1);
      expect(entries.filter(({ status }) => status === "running")).toHaveLength(19);
    });

    test("is new once, whatever other keys are begun at the same time, in any order and on every instance", async () => {
      const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
      const [own, others] = await Promise.all([
        Promise.all(keys.map((key) => begin(ledger, "body", key))),
        Promise.all(keys.toReversed().map((key) => begin(other, "body", key))),
      ]);
      const statuses = own.map(({ status }, index) => [status, others.at(-1 - index)?.status].sort());
      expect(statuses).toEqual(keys.map(() => ["new", "running"]));
    });

    test("gives the same answer again, on every instance", async () => {
      await begin();
      await answer(ledger, '{"success":true}');
      const answered = { status: "answered", answer: '{"success":true}' };
      expect(await begin()).toEqual(answered);
      expect(await begin(other)).toEqual(answered);
    });

    test("is bound to its body, while it runs and afterwards", async () => {
      await begin();
      expect(await begin(ledger, "another body")).toEqual({ status: "other_body" });
      await answer(ledger, "answer");
      expect(await begin(ledger, "another body")).toEqual({ status: "other_body" });
    });

    test("is its organization's own", async () => {
      await begin();
      expect(await begin(ledger, "another body", "key", "another shop")).toEqual({ status: "new" });
    });

    test("is free when its request ended without a verdict", async () => {
      await begin();
      await ledger.abandonIdempotent("shop", "key");
      expect(await begin(ledger, "another body")).toEqual({ status: "new" });
    });

    test.each(["body", "another body"])(
      "is free, to %s, where an earlier version has kept a refusal under it",
      async (body) => {
        await begin();
        await answer(ledger, JSON.stringify({ kind: "invalid", invalid: { reason: "insufficient_funds" } }));
        expect(await begin(other, body)).toEqual({ status: "new" });
        expect(await begin(ledger, body)).toEqual({ status: "running" });
        await answer(other, "success");
        expect(await begin(ledger, body)).toEqual({ status: "answered", answer: "success" });
      },
    );

    test("keeps its first answer", async () => {
      await begin();
      await answer(ledger, "first");
      await answer(ledger, "second");
      await ledger.abandonIdempotent("shop", "key");
      expect(await begin()).toEqual({ status: "answered", answer: "first" });
    });
  });

  describe("after its time", () => {
    test("an answer is forgotten, 24 h after it was given", async () => {
      await begin();
      clock.advance(leaseMs - 1);
      await answer(ledger, "answer");
      clock.advance(24 * hours - 1);
      expect(await begin()).toEqual({ status: "answered", answer: "answer" });
      clock.advance(1);
      expect(await begin(ledger, "another body")).toEqual({ status: "new" });
    });

    test("forgotten answers make room, a few with every new key", async () => {
      for (let key = 0; key < 10; key++) await begin(ledger, "body", `old ${key}`);
      clock.advance(24 * hours);
      for (let key = 0; key < 10; key++) await begin(ledger, "body", `new ${key}`);
      const rows = await db
        .$extendTables<LedgerTables>()
        .selectFrom("idempotency")
        .select("idempotency_key")
        .orderBy("idempotency_key")
        .execute();
      expect(rows.map((row) => row.idempotency_key)).toEqual(
        Array.from({ length: 10 }, (_, key) => `new ${key}`),
      );
    });
  });

  describe("when its instance dies", () => {
    test("a key that was running is free", async () => {
      await begin();
      clock.advance(leaseMs - 1);
      expect(await begin(other)).toEqual({ status: "running" });
      clock.advance(1);
      expect(await begin(other, "another body")).toEqual({ status: "new" });
    });

    test("an answer is not lost", async () => {
      await begin();
      await answer(ledger, "answer");
      clock.advance(10 * leaseMs);
      expect(await begin(other)).toEqual({ status: "answered", answer: "answer" });
    });

    test("a key is not free while its instance lives", async () => {
      await begin();
      for (let round = 0; round < 10; round++) {
        clock.advance(leaseMs - 1);
        await ledger.renewLeases();
      }
      expect(await begin(other)).toEqual({ status: "running" });
    });

    test("and comes back, it does not touch the request that took its place", async () => {
      await begin();
      clock.advance(leaseMs);
      await begin(other);
      await answer(ledger, "too late");
      await ledger.abandonIdempotent("shop", "key");
      expect(await begin(other)).toEqual({ status: "running" });
      await answer(other, "in time");
      expect(await begin()).toEqual({ status: "answered", answer: "in time" });
    });
  });

  describe("a key that was begun by a commit without an answer", () => {
    let isSilent: boolean;
    let doubtful: typeof ledger;
    beforeEach(() => {
      isSilent = true;
      const silent: Database = new Proxy(db, {
        get(target, name, self) {
          if (name === "$extendTables") return () => self;
          if (name === "transaction")
            return () => ({ setIsolationLevel: () => ({ execute: commitSilently }) });
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      doubtful = createTestLedger(silent, clock.now, { leaseMs });
    });

    async function commitSilently(work: Parameters<ReturnType<Database["transaction"]>["execute"]>[0]) {
      const result = await db.transaction().setIsolationLevel("read committed").execute(work);
      if (isSilent) throw new UnansweredError("no answer");
      return result;
    }

    test("is free again once the database answers", async () => {
      await expect(begin(doubtful)).rejects.toThrow("no answer");
      isSilent = false;
      expect(await begin(other)).toEqual({ status: "running" });
      await doubtful.retryWrites();
      expect(await begin(other)).toEqual({ status: "new" });
    });

    test("stays another request's of the same instance", async () => {
      isSilent = false;
      await begin(doubtful);
      isSilent = true;
      clock.advance(1);
      await expect(begin(doubtful)).rejects.toThrow("no answer");
      isSilent = false;
      await doubtful.retryWrites();
      expect(await begin(other)).toEqual({ status: "running" });
    });
  });

  describe("a success", () => {
    const right = { id: hashOf("payment"), holder: "request" };
    const kept = { organizationId: "shop", key: "key", answer: "success" };
    beforeEach(async () => {
      await begin();
      await ledger.acquireLease(right.id, right.holder);
    });

    test("is given again under its key from the moment it is delivered", async () => {
      expect(await begin(other)).toEqual({ status: "running" });
      await ledger.markDelivered(right.id, right.holder, kept);
      expect(await begin(other)).toEqual({ status: "answered", answer: "success" });
      expect(await other.acquireLease(right.id, "repeat")).toBe(true);
    });

    test("is not, and the key is free, where another request had the right to it by then", async () => {
      clock.advance(leaseMs);
      await other.acquireLease(right.id, "repeat");
      await ledger.renewLeases();
      await ledger.markDelivered(right.id, right.holder, kept);
      expect(await begin(other)).toEqual({ status: "new" });
      expect(await ledger.acquireLease(right.id, "third")).toBe(false);
    });
  });
});
