import { sql } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  createClock,
  createTestLedger,
  hashOf,
  paymentOf,
  seconds,
  settled,
} from "../../test/support/ledger/test-ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import type { Database } from "./database/database.ts";
import { UnansweredError } from "./database/transactions.ts";
import type { LedgerTables } from "./rows.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const leaseMs = 30 * seconds;
  const payment = paymentOf("a");
  const { id } = payment;

  let db: Database;
  let clock: ReturnType<typeof createClock>;
  let ledger: ReturnType<typeof createTestLedger>;
  /** Another instance on the same database. */
  let other: ReturnType<typeof createTestLedger>;

  /** Deliveries of `ledger` that came after the lease was lost. */
  let late: Hex[];

  beforeEach(async () => {
    db = await database.open();
    clock = createClock();
    late = [];
    ledger = createTestLedger(db, clock.now, { leaseMs, onLostDelivery: (one) => late.push(one) });
    other = createTestLedger(await database.open(), clock.now, { leaseMs, instanceId: "instance-2" });
  });

  describe("the right to an authorization", () => {
    test("goes to exactly one of many who ask at once", async () => {
      const won = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          (index % 2 === 0 ? ledger : other).acquireLease(id, `holder ${index}`),
        ),
      );
      expect(won.filter(Boolean)).toHaveLength(1);
    });

    test("is each authorization's own", async () => {
      expect(await ledger.acquireLease(id, "one")).toBe(true);
      expect(await ledger.acquireLease(hashOf("another"), "two")).toBe(true);
    });

    test("that the database has given without saying so is free again once it answers", async () => {
      const failures = [new UnansweredError("no answer"), new UndeterminedError("unreachable since")];
      const silent = db.withPlugin({
        transformQuery: ({ node }) => node,
        async transformResult({ result }) {
          const failure = failures.shift();
          if (failure !== undefined) throw failure;
          return result;
        },
      });
      const doubtful = createTestLedger(silent, clock.now, { leaseMs });
      await expect(doubtful.acquireLease(id, "one")).rejects.toThrow("no answer");
      expect(await other.acquireLease(id, "two")).toBe(false);
      await doubtful.retryWrites();
      expect(await other.acquireLease(id, "two")).toBe(true);
    });

    test("can be taken again by its holder", async () => {
      expect(await ledger.acquireLease(id, "one")).toBe(true);
      expect(await ledger.acquireLease(id, "one")).toBe(true);
    });

    test("shows whose it is, and by its renewals that its instance lives", async () => {
      expect(await ledger.findLease(id)).toBeNull();
      await ledger.acquireLease(id, "one");
      const taken = clock.now();
      expect(await ledger.findLease(id)).toEqual({ isOwn: true, expiresAt: taken + leaseMs });
      expect(await other.findLease(id)).toEqual({ isOwn: false, expiresAt: taken + leaseMs });
      clock.advance(leaseMs / 2);
      await ledger.renewLeases();
      expect(await other.findLease(id)).toEqual({ isOwn: false, expiresAt: clock.now() + leaseMs });
      clock.advance(leaseMs);
      expect(await other.findLease(id)).toBeNull();
    });

    test("is told from others that are asked for at the same time", async () => {
      const [own, free, theirs] = [hashOf("own"), hashOf("free"), hashOf("theirs")];
      await ledger.acquireLease(own, "one");
      await other.acquireLease(theirs, "one");
      const expiresAt = clock.now() + leaseMs;
      expect(await Promise.all([own, free, theirs, own].map((one) => ledger.findLease(one)))).toEqual([
        { isOwn: true, expiresAt },
        null,
        { isOwn: false, expiresAt },
        { isOwn: true, expiresAt },
      ]);
    });

    test("is not given to a holder of the same name in another instance", async () => {
      await ledger.acquireLease(id, "req-1");
      expect(await other.acquireLease(id, "req-1")).toBe(false);
      await other.releaseLease(id, "req-1");
      expect(await other.acquireLease(id, "req-1")).toBe(false);
    });

    test("is free when its holder gives it up, and only then", async () => {
      await ledger.acquireLease(id, "one");
      await ledger.releaseLease(id, "two");
      expect(await ledger.acquireLease(id, "two")).toBe(false);
      await ledger.releaseLease(id, "one");
      expect(await ledger.acquireLease(id, "two")).toBe(true);
    });

    test("is free when its instance has died", async () => {
      await ledger.acquireLease(id, "one");
      clock.advance(leaseMs - 1);
      expect(await other.acquireLease(id, "two")).toBe(false);
      clock.advance(1);
      expect(await other.acquireLease(id, "two")).toBe(true);
      await ledger.releaseLease(id, "one");
      expect(await ledger.acquireLease(id, "one")).toBe(false);
    });

    test("stays while its instance renews it", async () => {
      await ledger.acquireLease(id, "one");
      for (let round = 0; round < 50; round++) {
        clock.advance(leaseMs - 1);
        await ledger.renewLeases();
      }
      expect(await other.acquireLease(id, "two")).toBe(false);
    });

    test("is not renewed by another instance, nor by one that lost it", async () => {
      await ledger.acquireLease(id, "one");
      clock.advance(leaseMs / 2);
      await other.renewLeases();
      clock.advance(leaseMs / 2);
      expect(await other.acquireLease(id, "two")).toBe(true);
      await ledger.renewLeases();
      clock.advance(leaseMs);
      expect(await ledger.acquireLease(id, "one")).toBe(true);
    });

    test("is given up together with others, and only where its holder has it", async () => {
      const ids = ["a", "b", "c", "d"].map((name) => hashOf(name));
      for (const one of ids) expect(await ledger.acquireLease(one, `holder of ${one}`)).toBe(true);
      const [first, ...others] = ids;
      await Promise.all([
        ...ids.map((one) => ledger.releaseLease(one, `holder of ${first}`)),
        ...ids.map((one) => other.releaseLease(one, `holder of ${one}`)),
      ]);
      const taken = await Promise.all(ids.map((one) => other.acquireLease(one, "next")));
      expect(taken).toEqual([true, ...others.map(() => false)]);
    });

    test("takes no room once it is long over", async () => {
      await ledger.acquireLease(id, "one");
      const rows = () => db.$extendTables<LedgerTables>().selectFrom("leases").select("id").execute();
      clock.advance(leaseMs);
      await other.renewLeases();
      expect(await rows()).toHaveLength(1);
      clock.advance(100 * leaseMs);
      await other.renewLeases();
      expect(await rows()).toEqual([]);
    });
  });

  describe("delivery", () => {
    beforeEach(async () => {
      await ledger.introduce();
      await ledger.claimAll([payment]);
      await ledger.acquireLease(id, "one");
    });
    const deliveredAt = async () => (await ledger.find(id))?.deliveredAt;

    test("marks a success and frees the lease", async () => {
      await ledger.mine(0, [settled(payment)]);
      clock.advance(1_000);
      await ledger.markDelivered(id, "one");
      expect([await deliveredAt(), late]).toEqual([clock.now(), []]);
      expect(await ledger.acquireLease(id, "two")).toBe(true);
    });

    test("that who wants the lease next records too is none of a lost lease", async () => {
      for (const name of ["a", "b", "c", "d", "e"]) {
        const { id } = paymentOf(name);
        await ledger.acquireLease(id, "one");
        await Promise.all([ledger.markDelivered(id, "one"), ledger.acquireLease(id, "two")]);
      }
      expect(late).toEqual([]);
    });

    test("by a holder who has lost it is told, with that of others which were not", async () => {
      const [lost, kept] = [paymentOf("lost").id, paymentOf("kept").id];
      await ledger.acquireLease(lost, "one");
      clock.advance(leaseMs);
      await other.acquireLease(lost, "two");
      await ledger.acquireLease(kept, "one");
      await Promise.all([lost, kept].map((one) => ledger.markDelivered(one, "one")));
      expect(late).toEqual([lost]);
    });

    test.each<[string, () => Promise<void>]>([
      ["by a process that does not hold the lease", () => ledger.markDelivered(id, "two")],
      ["by a holder of the same name in another instance", () => other.markDelivered(id, "one")],
      [
        "by a holder who lost the lease",
        async () => {
          clock.advance(leaseMs);
          await other.acquireLease(id, "two");
          await ledger.markDelivered(id, "one");
        },
      ],
    ])("%s changes nothing", async (_, deliver) => {
      await ledger.mine(0, [settled(payment)]);
      await deliver();
      expect(await deliveredAt()).toBeNull();
      expect(await ledger.acquireLease(id, "three")).toBe(false);
    });

    test("that failed with the database is recorded once it is back, before the end", async () => {
      await ledger.mine(0, [settled(payment)]);
      const rename = (from: string, to: string) =>
        sql`alter table ${sql.ref(from)} rename to ${sql.ref(to)}`.execute(db);
      await rename("settlements", "elsewhere");
      await expect(ledger.markDelivered(id, "one")).rejects.toThrow();
      expect(await ledger.finishWrites(0)).toBe(1);
      const finished = ledger.finishWrites(60_000);
      await rename("elsewhere", "settlements");
      expect(await finished).toBe(0);
      expect(await deliveredAt()).toBe(clock.now());
    });

    test("that the database did not record for longer than a lease gives no second right in its process", async () => {
      await ledger.mine(0, [settled(payment)]);
      expect(await ledger.beginIdempotent("org_shop", "key", "body")).toEqual({ status: "new" });
      const rename = (from: string, to: string) =>
        sql`alter table ${sql.ref(from)} rename to ${sql.ref(to)}`.execute(db);
      await rename("settlements", "elsewhere");
      const kept = { organizationId: "org_shop", key: "key", answer: "the success" };
      await expect(ledger.markDelivered(id, "one", kept)).rejects.toThrow();
      clock.advance(leaseMs + 1);
      await expect(ledger.acquireLease(id, "two")).rejects.toThrow();
      await rename("elsewhere", "settlements");
      expect(await ledger.beginIdempotent("org_shop", "key", "body")).toEqual({
        status: "answered",
        answer: "the success",
      });
      expect(await ledger.acquireLease(id, "three")).toBe(true);
      expect(await deliveredAt()).toBe(clock.now());
    });

    test("that the database is slow to record is no other instance's to give, however long that takes", async () => {
      await ledger.mine(0, [settled(payment)]);
      await ledger.releaseLease(id, "one");
      let commits: "fail" | "wait" | "pass" = "fail";
      const begun = Promise.withResolvers<void>();
      const over = Promise.withResolvers<void>();
      const execute = async (work: Parameters<ReturnType<Database["transaction"]>["execute"]>[0]) => {
        if (commits === "fail") throw new Error("the database stops");
        if (commits === "wait") {
          begun.resolve();
          await over.promise;
        }
        return db.transaction().setIsolationLevel("read committed").execute(work);
      };
      const slow: Database = new Proxy(db, {
        get(target, name, self) {
          if (name === "$extendTables") return () => self;
          if (name === "transaction") return () => ({ setIsolationLevel: () => ({ execute }) });
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      const troubled = createTestLedger(slow, clock.now, { leaseMs, instanceId: "instance-3" });
      await troubled.acquireLease(id, "one");
      await expect(troubled.markDelivered(id, "one")).rejects.toThrow("the database stops");
      commits = "wait";
      const retried = troubled.retryWrites();
      await begun.promise;
      commits = "pass";
      for (let round = 0; round < 5; round++) {
        clock.advance(leaseMs - 1);
        await troubled.renewLeases();
        expect(await other.acquireLease(id, "two")).toBe(false);
      }
      over.resolve();
      await retried;
      expect(await deliveredAt()).toBe(clock.now());
      expect(await other.acquireLease(id, "two")).toBe(true);
    });

    test("keeps its first time", async () => {
      await ledger.mine(0, [settled(payment)]);
      await ledger.markDelivered(id, "one");
      const first = clock.now();
      clock.advance(1_000);
      await ledger.acquireLease(id, "two");
      await ledger.markDelivered(id, "two");
      expect(await deliveredAt()).toBe(first);
    });
  });
});
