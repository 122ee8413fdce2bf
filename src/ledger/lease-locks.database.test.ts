import { sql, type Transaction } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  createClock,
  createTestLedger,
  hashOf,
  seconds,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";
import { inTransaction } from "./database/transactions.ts";
import type { LedgerTables } from "./rows.ts";

/*
 * On Postgres, where several instances work with the leases at once: none keeps another from recording a delivery. Where
 * that takes longer than a lease lasts, another request gets the same success.
 */

const backend = backends.find(({ name }) => name === "Postgres");
if (backend === undefined) throw new Error("no Postgres");
const database = useTestDatabase(backend);

const leaseMs = 30 * seconds;
const [low, high] = [hashOf("a"), hashOf("b")].sort();
if (low === undefined || high === undefined) throw new Error("no ids");

let clock: ReturnType<typeof createClock>;
let ledger: TestLedger;
let other: TestLedger;
beforeEach(async () => {
  clock = createClock();
  ledger = createTestLedger(await database.open(), clock.now, { leaseMs });
  other = createTestLedger(await database.open(), clock.now, { leaseMs, instanceId: "instance-2" });
});

/** Runs what is to be seen while a transaction of another process has locked something. */
async function inAnother(work: (transaction: Transaction<LedgerTables>) => Promise<void>): Promise<void> {
  await inTransaction((await database.open()).$extendTables<LedgerTables>(), work);
}

const lockLease = (transaction: Transaction<LedgerTables>, id: typeof low) =>
  transaction.selectFrom("leases").select("id").where("id", "=", id).forUpdate().noWait().execute();

const lockKey = (transaction: Transaction<LedgerTables>, key: string) =>
  transaction
    .selectFrom("idempotency")
    .select("idempotency_key")
    .where("idempotency_key", "=", key)
    .forUpdate()
    .noWait()
    .execute();

/** Resolves when a statement in the database of this test waits for a lock of another transaction. */
async function someoneWaits(): Promise<void> {
  const db = await database.open();
  const waiting = async () => {
    const { rows } = await sql`select pid from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
    return rows.length;
  };
  await expect.poll(waiting).toBeGreaterThan(0);
}

test("who asks for a lease that another has waits for nobody, and keeps nobody waiting", async () => {
  await ledger.acquireLease(low, "one");
  await inAnother(async (transaction) => {
    await lockLease(transaction, low);
    expect(await other.acquireLease(low, "two")).toBe(false);
  });
});

test("who begins a key that another runs waits for nobody, and keeps nobody waiting", async () => {
  await ledger.beginIdempotent("shop", "key", "body");
  await inAnother(async (transaction) => {
    await lockKey(transaction, "key");
    expect(await other.beginIdempotent("shop", "key", "body")).toEqual({ status: "running" });
  });
});

test("a key that another transaction works on holds up no renewal of the others", async () => {
  for (const key of ["a", "b"]) await ledger.beginIdempotent("shop", key, "body");
  clock.advance(leaseMs - 1);
  await inAnother(async (transaction) => {
    await lockKey(transaction, "a");
    await ledger.renewLeases();
  });
  clock.advance(1);
  expect(await other.beginIdempotent("shop", "a", "body")).toEqual({ status: "new" });
  expect(await other.beginIdempotent("shop", "b", "body")).toEqual({ status: "running" });
});

test("deliveries lock their leases in the order in which leases are taken", async () => {
  for (const id of [high, low]) await ledger.acquireLease(id, "one");
  let recorded: Promise<unknown> | undefined;
  await inAnother(async (transaction) => {
    await lockLease(transaction, low);
    recorded = Promise.all([high, low].map((id) => ledger.markDelivered(id, "one")));
    await someoneWaits();
    expect(await lockLease(transaction, high)).toHaveLength(1);
  });
  await recorded;
  expect(await other.acquireLease(high, "two")).toBe(true);
});

test("deliveries lock their keys in the order in which keys are begun", async () => {
  const keyOf = new Map([
    [low, "z"],
    [high, "y"],
  ]);
  for (const [id, key] of keyOf) {
    await ledger.acquireLease(id, "one");
    await ledger.beginIdempotent("shop", key, "body");
  }
  let recorded: Promise<unknown> | undefined;
  await inAnother(async (transaction) => {
    await lockKey(transaction, "y");
    recorded = Promise.all(
      [...keyOf].map(([id, key]) =>
        ledger.markDelivered(id, "one", { organizationId: "shop", key, answer: "the success" }),
      ),
    );
    await someoneWaits();
    expect(await lockKey(transaction, "z")).toHaveLength(1);
  });
  await recorded;
  expect(await other.beginIdempotent("shop", "z", "body")).toMatchObject({ status: "answered" });
});
