import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { backends, sharedPostgres, useTestDatabase } from "../../../../test/support/databases.ts";
import {
  chainId,
  createTestLedger,
  hashOf,
  hours,
  operator,
  paymentOf,
  settled,
  signAsIf,
} from "../../../../test/support/ledger/test-ledger.ts";
import { stillRunningAfter } from "../../../../test/support/live-processes.ts";
import { type PostgresServer, postgresPassword } from "../../../../test/support/postgres.ts";
import {
  type Fate,
  type PostgresProxy,
  startPostgresProxy,
} from "../../../../test/support/postgres-proxy.ts";
import { startTransactionPooler } from "../../../../test/support/transaction-pooler.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import type { LedgerTables } from "../../rows.ts";
import { closeTxNonce, lockingTxNonces } from "../../tx-nonces.ts";
import type { Database } from "../database.ts";
import { migrate, openDatabase } from "../open-database.ts";
import { inTransaction, withCommit } from "../transactions.ts";

/*
 * Postgres alone: a server that goes away, connections that break, and other processes.
 */

const backend = backends.find(({ name }) => name === "Postgres");
if (backend === undefined) throw new Error("no Postgres");
const database = useTestDatabase(backend);
let server: PostgresServer;
beforeAll(async () => {
  server = await sharedPostgres();
});

describe("a URL that leads nowhere", () => {
  const urlOf = (changes: Partial<Record<"password" | "port" | "pathname" | "username", string>>) => {
    const url = new URL(database.url);
    return Object.assign(url, changes).href;
  };
  const refusalOf = (url: string) =>
    openDatabase({ url }).then(
      () => null,
      (error: unknown) => error,
    );

  test.each<[string, () => string, string]>([
    ["another password", () => urlOf({ password: "hunter2" }), "password authentication failed"],
    ["another database", () => urlOf({ pathname: "/hunter2" }), 'database "hunter2" does not exist'],
    ["no server", () => urlOf({ password: "hunter2", port: "1" }), "ECONNREFUSED"],
  ])("%s: is refused, and says why", async (_, url, reason) => {
    const error = await refusalOf(url());
    expect(error).toMatchObject({ name: "KitError", message: "The database cannot be reached" });
    expect(String((error as Error).cause)).toContain(reason);
  });

  test("a URL that cannot be read is refused without being repeated", async () => {
    for (const url of [
      "postgres://x402:hunter2@[/x402",
      "postgres://x402:hunter2%@db:port/x402",
      "postgres://x402:hunter2@db/%",
    ]) {
      const error = await refusalOf(url);
      expect(error, url).toMatchObject({
        name: "ConfigurationError",
        problems: [{ name: "DATABASE_URL" }],
      });
      expect(textsOf(error)).not.toContain("hunter2");
    }
  });

  test("no error holds the password", async () => {
    for (const url of [
      urlOf({ port: "1" }),
      urlOf({ pathname: "/nowhere" }),
      urlOf({ username: "nobody" }),
    ]) {
      const texts = textsOf(await refusalOf(url));
      expect(texts).not.toContain(postgresPassword);
      expect(texts).not.toContain(encodeURIComponent(postgresPassword));
    }
  });

  /** Everything that could end in a log. */
  function textsOf(error: unknown): string {
    const texts = [];
    for (let cause = error; cause instanceof Error; cause = cause.cause) {
      texts.push(
        cause.message,
        cause.stack,
        JSON.stringify(cause),
        JSON.stringify(Object.getOwnPropertyDescriptors(cause)),
      );
    }
    return texts.join("\n");
  }
});

describe("a server that is not to be trusted with money", () => {
  test("is refused when it forgets what it said was done", async () => {
    const name = new URL(database.url).pathname.slice(1);
    await server.query(database.url, `alter database ${name} set synchronous_commit = off`);
    try {
      await expect(database.open()).rejects.toThrow("it reports commits done that a crash undoes");
    } finally {
      await server.query(database.url, `alter database ${name} reset synchronous_commit`);
    }
  });
});

test("64-bit integers come as numbers, and those that are too large not at all", async () => {
  const db = await database.open();
  const ledger = createTestLedger(db, Date.now);
  await ledger.introduce(2 ** 53 - 10);
  expect(await ledger.nextTxNonce(chainId, operator)).toBe(2 ** 53 - 10);
  await server.query(database.url, "update operator_nonces set next_tx_nonce = 9007199254740993");
  await expect(ledger.nextTxNonce(chainId, operator)).rejects.toThrow(
    "larger integer than the ledger stores",
  );
});

describe("a transaction", () => {
  let db: Database;
  beforeEach(async () => {
    db = await database.open();
    await createTestLedger(db, Date.now).introduce();
  });
  const nonces = () => db.$extendTables<LedgerTables>();

  test("that is in a deadlock with another one is done again", async () => {
    const operators = [operator, `0x${"bb".repeat(20)}` as const];
    const ledger = createTestLedger(db, Date.now);
    for (const one of operators) await ledger.introduceOperator(chainId, one, 0);
    let tries = 0;
    const bothBegan = Promise.withResolvers<void>();
    const updateInOrder = (order: readonly `0x${string}`[]) =>
      inTransaction(nonces(), async (transaction) => {
        for (const one of order) {
          await transaction
            .updateTable("operator_nonces")
            .set((row) => ({ next_tx_nonce: row("next_tx_nonce", "+", 1) }))
            .where("operator", "=", one.toLowerCase() as typeof one)
            .execute();
          // Each has one row and wants the other's.
          if (++tries >= 2) bothBegan.resolve();
          await bothBegan.promise;
        }
      });
    await Promise.all([updateInOrder(operators), updateInOrder(operators.toReversed())]);
    expect(tries).toBeGreaterThan(4);
    for (const one of operators) expect(await ledger.nextTxNonce(chainId, one)).toBe(2);
  });

  test("with an error that was caught inside it keeps nothing", async () => {
    const failing = inTransaction(nonces(), async (transaction) => {
      await transaction.updateTable("operator_nonces").set({ next_tx_nonce: 5 }).execute();
      await transaction
        .insertInto("operator_nonces")
        .values({ chain_id: chainId, operator: operator.toLowerCase() as typeof operator, next_tx_nonce: 1 })
        .execute()
        .catch(() => {});
    });
    await expect(failing).rejects.toThrow();
    expect(await createTestLedger(db, Date.now).nextTxNonce(chainId, operator)).toBe(0);
  });
});

test("a lease that is being given up holds up no renewal of the others", async () => {
  const db = (await database.open()).$extendTables<LedgerTables>();
  let time = 1_800_000_000_000;
  const ledger = createTestLedger(await database.open(), () => time, { leaseMs: 1_000 });
  const [a, b] = [paymentOf("a").id, paymentOf("b").id];
  for (const id of [a, b]) expect(await ledger.acquireLease(id, "holder")).toBe(true);
  time += 900;
  await inTransaction(db, async (transaction) => {
    await transaction.deleteFrom("leases").where("id", "=", a).execute();
    await ledger.renewLeases();
  });
  time += 900;
  expect(await ledger.findLease(a)).toBeNull();
  expect(await ledger.findLease(b)).toMatchObject({ isOwn: true });
});

test("an old key that another transaction is taking away holds up no payment with an identifier", async () => {
  const db = (await database.open()).$extendTables<LedgerTables>();
  let time = 1_800_000_000_000;
  const ledger = createTestLedger(await database.open(), () => time);
  await ledger.introduce();
  expect(await ledger.beginIdempotent("org_shop", "old", "body")).toEqual({ status: "new" });
  time += 25 * hours;
  const payment = paymentOf("a", { identifier: { id: "order", fingerprint: hashOf("a") } });
  await inTransaction(db, async (transaction) => {
    await transaction.deleteFrom("idempotency").execute();
    const claimed = ledger.claimAll([payment]).then(({ outcomes }) => outcomes);
    // Held up, it would be given up.
    expect(await claimed).toEqual(["claimed"]);
  });
});

test("an operator that another transaction holds keeps no other operator's payments undecided", async () => {
  const db = (await database.open()).$extendTables<LedgerTables>();
  const ledger = createTestLedger(await database.open(), Date.now);
  const other = { chainId, operator: `0x${"bb".repeat(20)}` as const };
  await ledger.introduce();
  await ledger.introduceOperator(chainId, other.operator, 0);
  const payment = paymentOf("a");
  await ledger.claimAll([payment]);
  const block = { blockNumber: 60n, blockHash: hashOf("block") };
  let heldUp: Promise<void> | undefined;
  await inTransaction(db, async (transaction) => {
    const held = transaction.updateTable("operator_nonces").set({ next_tx_nonce: 1 });
    await held.where("operator", "=", other.operator).execute();
    heldUp = ledger.conclude({ ...other, ...block, txNonce: 0, hash: hashOf("theirs") }, []);
    // Held up, it would be given up.
    await ledger.mine(0, [settled(payment)]);
  });
  await heldUp;
  expect(await ledger.find(payment.id)).toMatchObject({ state: "settled" });
});

describe("transactions of one operator", () => {
  const [first, second] = [paymentOf("a"), paymentOf("b")];
  let ledger: ReturnType<typeof createTestLedger>;
  beforeEach(async () => {
    ledger = createTestLedger(await database.open(), Date.now);
    await ledger.introduce();
    await ledger.claimAll([first]);
  });

  test("are concluded while another instance signs the next one", async () => {
    const other = createTestLedger(await database.open(), Date.now, { instanceId: "instance-2" });
    const signing = Promise.withResolvers<void>();
    const concluded = Promise.withResolvers<void>();
    const claim = other.claim({ chainId, address: operator, maxUnmined: 16 }, [second], async (txNonce) => {
      signing.resolve();
      await concluded.promise;
      return signAsIf(txNonce);
    });
    await signing.promise;
    // Held up, it would be given up.
    await ledger.mine(0, [settled(first)]);
    concluded.resolve();
    expect((await claim).outcomes).toEqual(["claimed"]);
    expect(await ledger.find(first.id)).toMatchObject({ state: "settled" });
  });

  test("get no other attempt while they are being concluded", async () => {
    const db = (await database.open()).$extendTables<LedgerTables>();
    const attempt = { ...(await signAsIf(1)), chainId, operator, txNonce: 0, createdAt: 1 };
    let added: Promise<boolean> | undefined;
    await inTransaction(db, async (transaction) => {
      for (const statement of lockingTxNonces(transaction, { chainId, operator }, [0])) {
        await transaction.executeQuery(statement);
      }
      added = ledger.addAttempt({ ...attempt, kind: "settle" });
      expect(await Promise.race([added, delay(300, "waits")])).toBe("waits");
      await closeTxNonce(transaction, attempt, hashOf("transaction 0"));
    });
    expect(await added).toBe(false);
  });

  test("are concluded once, and charged once, by two instances at the same time", async () => {
    const other = createTestLedger(await database.open(), Date.now, { instanceId: "instance-2" });
    const { hash } = await signAsIf(0);
    const mined = {
      chainId,
      operator,
      txNonce: 0,
      hash,
      blockNumber: 60n,
      blockHash: hashOf("block"),
      gasCost: 10n ** 15n,
    };
    await Promise.all([ledger, other, ledger, other].map((one) => one.conclude(mined, [settled(first)])));
    const { spent } = await ledger.gasSpending(first.organizationId, first.network);
    expect(spent).toEqual({ withCode: 0n, plain: 10n ** 15n + 10n ** 9n });
  });
});

test("a claim reads no more of a payer that has paid often", async () => {
  const ledger = createTestLedger(await database.open(), Date.now);
  await ledger.introduce();
  const payments = Array.from({ length: 300 }, (_, index) => paymentOf(index, { amount: 1n, balance: 300n }));
  await ledger.claimAll(payments);
  await ledger.mine(0, payments.map(settled));
  let reading = "";
  const proxy = await startPostgresProxy(database.url, ({ sql }) => {
    if (sql.startsWith('select "asset", "payer", "amount"')) reading = sql;
    return "pass";
  });
  const db = await openDatabase({ url: proxy.url });
  await createTestLedger(db, Date.now).claimAll([paymentOf("a")]);
  await db.destroy();
  await proxy.close();
  const plan = await server.query(database.url, `explain (generic_plan) ${reading}`);
  const lines = plan.map((row) => String(row["QUERY PLAN"]).trim());
  expect(lines.filter((line) => line.includes("Scan"))).toHaveLength(3);
  expect(lines.filter((line) => line.startsWith("Filter"))).toEqual([]);
});

describe.each(backends)("a statement that is sent with the commit, on $name", (backend) => {
  const database = useTestDatabase(backend);

  test("takes the transaction with it when it fails, and is what is told", async () => {
    const db = await database.open();
    const ledger = createTestLedger(db, Date.now);
    await ledger.introduce(4);
    const nonceRow = { chain_id: chainId, operator: operator.toLowerCase() as typeof operator };
    const failing = inTransaction(db.$extendTables<LedgerTables>(), async (transaction) => {
      const move = transaction.updateTable("operator_nonces").set({ next_tx_nonce: 5 });
      const add = transaction.insertInto("operator_nonces").values({ ...nonceRow, next_tx_nonce: 1 });
      await withCommit(transaction, [move, add, move]);
    });
    await expect(failing).rejects.toThrow(/unique/i);
    expect(await ledger.nextTxNonce(chainId, operator)).toBe(4);
  });
});

describe("when connections break", () => {
  let proxy: PostgresProxy | undefined;
  let db: Database | undefined;
  let decide: (sql: string, number: number) => Fate;

  beforeEach(() => {
    decide = () => "pass";
  });
  afterEach(async () => {
    await db?.destroy();
    await proxy?.close();
    db = undefined;
    proxy = undefined;
  });

  async function openByProxy(): Promise<ReturnType<typeof createTestLedger>> {
    proxy = await startPostgresProxy(database.url, ({ sql, number }) => decide(sql, number));
    db = await openDatabase({ url: proxy.url });
    const ledger = createTestLedger(db, Date.now);
    await ledger.introduce(7);
    return ledger;
  }
  /** Decides over the first statement that matches, and lets all others pass. */
  const applyOnce = (matches: (sql: string) => boolean, fate: Fate) => {
    let used = false;
    decide = (sql) => {
      if (used || !matches(sql)) return "pass";
      used = true;
      return fate;
    };
    return () => used;
  };
  const isCommit = (sql: string) => sql.endsWith("commit") && sql !== "commit";

  /** Claims a payment, and tells how often it was signed. */
  async function claimCounting(ledger: ReturnType<typeof createTestLedger>) {
    let signed = 0;
    const { outcomes, attempt } = await ledger.claimAll([paymentOf("a")], (txNonce) => {
      signed++;
      return signAsIf(txNonce);
    });
    return { outcomes, txNonce: attempt?.txNonce, signed };
  }
  /** Whatever happened: the payment is there once, with the first txNonce, and the next one follows. */
  async function expectClaimedOnce(): Promise<void> {
    const witness = createTestLedger(await database.open(), Date.now);
    const open = await witness.openAttempts(chainId, operator);
    expect(open.map(({ attempt, settlements }) => [attempt.txNonce, settlements.length])).toEqual([[7, 1]]);
    expect(await witness.nextTxNonce(chainId, operator)).toBe(8);
  }

  test("before a commit, the work is done again", async () => {
    const ledger = await openByProxy();
    const cut = applyOnce(isCommit, "cut");
    expect(await claimCounting(ledger)).toEqual({ outcomes: ["claimed"], txNonce: 7, signed: 2 });
    expect(cut()).toBe(true);
    await expectClaimedOnce();
  });

  test("after a commit, before its answer, the work is not done again", async () => {
    const ledger = await openByProxy();
    const cut = applyOnce(isCommit, "cut after");
    expect(await claimCounting(ledger)).toEqual({ outcomes: ["claimed"], txNonce: 7, signed: 1 });
    expect(cut()).toBe(true);
    await expectClaimedOnce();
  });

  test("and the commit reaches the server only when the work is being done again, it is refused", async () => {
    const ledger = await openByProxy();
    applyOnce(isCommit, "hold");
    const claiming = claimCounting(ledger);
    // It has been found out that the commit did not happen, and the new try waits for the old one's locks.
    await waitFor(async () => {
      const fences = await server.query(database.url, "select 1 from commits where fenced = 1");
      return fences.length > 0;
    });
    await delay(100);
    proxy?.release();
    expect(await claiming).toEqual({ outcomes: ["claimed"], txNonce: 7, signed: 2 });
    await expectClaimedOnce();
  });

  test("even while it is being found out what became of a commit", async () => {
    const ledger = await openByProxy();
    let commits = 0;
    let questions = 0;
    decide = (sql) => {
      if (isCommit(sql) && ++commits === 1) return "cut after";
      if (/from commits|on conflict \(id\) do nothing$/.test(sql) && ++questions <= 4) {
        return questions % 2 === 0 ? "cut" : "cut after";
      }
      return "pass";
    };
    expect(await claimCounting(ledger)).toEqual({ outcomes: ["claimed"], txNonce: 7, signed: 1 });
    expect(questions).toBeGreaterThan(4);
    await expectClaimedOnce();
  });

  test("at any statement of a claim, before it or after it, the outcome is the same", async () => {
    const ledger = await openByProxy();
    let first = 0;
    let count = 0;
    decide = (_, number) => {
      if (first === 0) first = number;
      count = number - first + 1;
      return "pass";
    };
    await claimCounting(ledger);
    await db?.destroy();
    await proxy?.close();
    expect(count).toBeGreaterThan(6);

    for (let at = 1; at <= count; at++) {
      for (const fate of ["cut", "cut after"] as const) {
        await database.clear();
        const again = await openByProxy();
        let seen = 0;
        decide = () => (++seen === at ? fate : "pass");
        const { outcomes, txNonce } = await claimCounting(again);
        expect({ outcomes, txNonce }, `${fate} at statement ${at}`).toEqual({
          outcomes: ["claimed"],
          txNonce: 7,
        });
        await expectClaimedOnce();
        await db?.destroy();
        await proxy?.close();
      }
    }
  }, 60_000);

  test("single statements are done again, reads and what may be repeated", async () => {
    const ledger = await openByProxy();
    for (const fate of ["cut", "cut after"] as const) {
      applyOnce((sql) => sql.startsWith("select"), fate);
      expect(await ledger.nextTxNonce(chainId, operator)).toBe(7);
      applyOnce((sql) => sql.startsWith('insert into "leases"'), fate);
      expect(await ledger.acquireLease(paymentOf(fate).id, "holder")).toBe(true);
      applyOnce((sql) => sql.startsWith('delete from "leases"'), fate);
      await ledger.releaseLease(paymentOf(fate).id, "holder");
      expect(await ledger.acquireLease(paymentOf(fate).id, "another")).toBe(true);
    }
  });

  test("all at once, many times, nothing is lost and nothing done twice", async () => {
    const ledger = await openByProxy();
    let statements = 0;
    const cuts: Promise<boolean>[] = [];
    decide = () => {
      if (++statements % 40 === 0) cuts.push(server.cutConnection(database.url));
      return "pass";
    };
    /** As a client does: where it is not known what became of a payment, it is asked about, and sent again if it is not there. */
    const claim = async (payment: ReturnType<typeof paymentOf>): Promise<string | undefined> => {
      try {
        return (await ledger.claimAll([payment])).outcomes[0];
      } catch (error) {
        // On a slow machine one that is cut off three times has used up its ten seconds.
        expect(error).toBeInstanceOf(UndeterminedError);
        return (await ledger.find(payment.id)) === null ? claim(payment) : "claimed";
      }
    };
    const payments = Array.from({ length: 100 }, (_, index) => paymentOf(index, { amount: 1n }));
    expect(await Promise.all(payments.map(claim))).toEqual(payments.map(() => "claimed"));
    expect((await Promise.all(cuts)).filter(Boolean).length).toBeGreaterThan(5);
    const witness = createTestLedger(await database.open(), Date.now);
    const open = await witness.openAttempts(chainId, operator);
    expect(open.map(({ attempt }) => attempt.txNonce)).toEqual(payments.map((_, index) => 7 + index));
    const claimed = open.flatMap(({ settlements }) => settlements.map(({ id }) => id));
    expect(claimed.toSorted()).toEqual(payments.map(({ id }) => id).toSorted());
  }, 60_000);
});

describe("round trips to the server", () => {
  let proxy: PostgresProxy;
  let db: Database;
  beforeEach(async () => {
    proxy = await startPostgresProxy(database.url, () => "pass");
    db = await openDatabase({ url: proxy.url });
  });
  afterEach(async () => {
    await db.destroy();
    await proxy.close();
  });
  const count = async (work: () => Promise<unknown>) => {
    const before = proxy.roundTrips();
    await work();
    return proxy.roundTrips() - before;
  };
  const payments = (from: number) =>
    Array.from({ length: 50 }, (_, index) => paymentOf(from + index, { payer: from + index }));

  test("are few for a payment, and no more for fifty together", async () => {
    const ledger = createTestLedger(db, Date.now);
    await ledger.introduce();
    const [first, second] = [payments(0), payments(100)];
    const [one] = first;
    if (one === undefined) throw new Error("no payment");
    // The transaction's beginning, what decides, and what is stored with the commit. The first locks nothing.
    expect(await count(() => ledger.claimAll(first))).toBe(3);
    expect(await count(() => ledger.claimAll(second))).toBe(3);
    const both = () =>
      Promise.all([first, second].map((all, txNonce) => ledger.mine(txNonce, all.map(settled))));
    expect(await count(both), "transactions of one block").toBe(3);
    expect(await count(() => Promise.all(first.map(({ id }) => ledger.acquireLease(id, "holder"))))).toBe(3);
    expect(await count(() => ledger.find(one.id))).toBe(1);
    expect(await count(() => ledger.markDelivered(one.id, "holder"))).toBe(2);
    expect(await ledger.find(one.id)).toMatchObject({ state: "settled", deliveredAt: expect.any(Number) });
    expect(await ledger.findLease(one.id)).toBeNull();
  });
});

describe("after ten seconds of patience", () => {
  const opened: Database[] = [];
  const proxies: PostgresProxy[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((db) => db.destroy()));
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  });

  async function open(url: string): Promise<Database> {
    const db = await openDatabase({ url });
    opened.push(db);
    return db;
  }
  /** A database of its own, whose statements can be stopped on their way. */
  async function prepare() {
    const url = await server.createDatabase();
    await migrate(await open(url));
    const gate: { decide: (sql: string) => Fate } = { decide: () => "pass" };
    const proxy = await startPostgresProxy(url, ({ sql }) => gate.decide(sql));
    proxies.push(proxy);
    const ledger = createTestLedger(await open(proxy.url), Date.now);
    await ledger.introduce(7);
    return { url, gate, proxy, ledger };
  }

  async function stopByLock(): Promise<void> {
    const { url, ledger } = await prepare();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holding = inTransaction((await open(url)).$extendTables<LedgerTables>(), async (transaction) => {
      await transaction.updateTable("operator_nonces").set({ next_tx_nonce: 7 }).execute();
      locked.resolve();
      await held;
    });
    await locked.promise;
    await expect(ledger.claimAll([paymentOf("a")]), "a lock that is held for good").rejects.toMatchObject({
      name: "UndeterminedError",
      message: "The database took too long",
    });
    letGo();
    await holding;
    expect((await ledger.claimAll([paymentOf("a")])).outcomes).toEqual(["claimed"]);
  }

  async function releaseLater(): Promise<void> {
    const { url, gate, ledger } = await prepare();
    const { id } = paymentOf("a");
    expect(await ledger.acquireLease(id, "holder")).toBe(true);
    gate.decide = () => "cut";
    await expect(ledger.releaseLease(id, "holder"), "no server").rejects.toMatchObject({
      name: "UndeterminedError",
    });
    gate.decide = () => "pass";
    // What could not be given up is given up now.
    await ledger.retryWrites();
    const other = createTestLedger(await open(url), Date.now, { instanceId: "another" });
    expect(await other.acquireLease(id, "another")).toBe(true);
  }

  async function askAnother(): Promise<void> {
    const { gate, proxy, ledger } = await prepare();
    let swallowed = 0;
    gate.decide = (sql) => (sql.startsWith("select") && ++swallowed === 1 ? "swallow" : "pass");
    expect(await ledger.nextTxNonce(chainId, operator), "a network that swallows a question").toBe(7);
    expect(swallowed).toBe(2);
    await waitFor(async () => proxy.silent() === 0);
  }

  async function renewOnceItIsBack(): Promise<void> {
    const { url, gate, proxy, ledger } = await prepare();
    const { id } = paymentOf("a");
    const lookAt = createTestLedger(await open(url), Date.now);
    await ledger.acquireLease(id, "holder");
    await ledger.renewLeases();
    gate.decide = () => "swallow";
    const questions = Array.from({ length: 30 }, () => ledger.nextTxNonce(chainId, operator));
    const renewal = ledger.renewLeases();
    // The ten connections that others have, and the one for renewals.
    await waitFor(async () => proxy.silent() === 11);
    const before = await lookAt.findLease(id);
    gate.decide = () => "pass";
    // What was asked in the silence is given up after three seconds; the others wait for ten.
    await renewal;
    expect((await lookAt.findLease(id))?.expiresAt, "renewed, whoever waits for answers").toBeGreaterThan(
      before?.expiresAt ?? Number.POSITIVE_INFINITY,
    );
    expect(proxy.silent()).toBeGreaterThanOrEqual(10);
    expect(await Promise.all(questions)).toEqual(questions.map(() => 7));
  }

  test("leases are renewed while no commit can be looked up", async () => {
    const { url, gate, ledger } = await prepare();
    const { id } = paymentOf("a");
    expect(await ledger.acquireLease(id, "holder")).toBe(true);
    const before = await ledger.findLease(id);
    gate.decide = (sql) => (/\binto commits\b/.test(sql) ? "cut" : "pass");
    await ledger.renewLeases();
    const after = await createTestLedger(await open(url), Date.now).findLease(id);
    expect(after?.expiresAt).toBeGreaterThan(before?.expiresAt ?? Number.POSITIVE_INFINITY);
  });

  test("a lock is not waited for any longer, a lease is owed, a silent server is asked once more, and leases are renewed as soon as it is back", async () => {
    await Promise.all([stopByLock(), releaseLater(), askAnother(), renewOnceItIsBack()]);
  }, 40_000);
});

test("a pooler that gives every transaction another connection mixes nothing up", async () => {
  const pooler = await startTransactionPooler(database.url, 3);
  const dbs = await Promise.all([1, 2].map(() => openDatabase({ url: pooler.url })));
  try {
    const ledgers = dbs.map((db, index) =>
      createTestLedger(db, Date.now, { instanceId: `instance-${index}` }),
    );
    const [first, second] = ledgers;
    if (first === undefined || second === undefined) throw new Error("no ledgers");
    await first.introduce();
    const claims = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const ledger = index % 2 === 0 ? first : second;
        const payment = paymentOf(index, { amount: 1n, balance: 30n });
        expect(await ledger.acquireLease(payment.id, "holder")).toBe(true);
        const { outcomes, attempt } = await ledger.claimAll([payment]);
        if (attempt !== null) await ledger.mine(attempt.txNonce, [settled(payment)], 40n);
        await ledger.markDelivered(payment.id, "holder");
        return { outcome: outcomes[0], txNonce: attempt?.txNonce };
      }),
    );
    const txNonces = claims.flatMap(({ txNonce }) => txNonce ?? []).sort((a, b) => a - b);
    expect(txNonces).toEqual(txNonces.map((_, index) => index));
    expect(await second.list({ state: "submitted" }, { limit: 1 })).toEqual({ settlements: [], next: null });
    expect(pooler.complaints()).toEqual([]);
    expect(Math.min(...pooler.transactions())).toBeGreaterThan(10);
  } finally {
    await Promise.all(dbs.map((db) => db.destroy()));
    await pooler.close();
  }
  // What a session keeps would be seen by the next user of its connection.
  const left = await server.query(
    database.url,
    "select query from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
  );
  expect(left).toEqual([]);
});

test("marks of old commits are taken away", async () => {
  const db = await database.open();
  await server.query(database.url, "insert into commits (id, fenced, at) values ('old', 0, 0)");
  const later = Date.now() + 61_000;
  const realNow = Date.now;
  Date.now = () => later;
  try {
    await inTransaction(db.$extendTables<LedgerTables>(), async () => {});
  } finally {
    Date.now = realNow;
  }
  await waitFor(
    async () => (await server.query(database.url, "select 1 from commits where id = 'old'")).length === 0,
  );
});

test("asking again for an idempotency key that runs, or is answered, leaves no mark", async () => {
  const ledger = createTestLedger(await database.open(), Date.now);
  const begin = () => ledger.beginIdempotent("shop", "key", "a body");
  const marks = async () => (await server.query(database.url, "select 1 from commits")).length;
  expect(await begin()).toEqual({ status: "new" });
  const before = await marks();
  expect(before).toBeGreaterThan(0);
  expect(await begin()).toEqual({ status: "running" });
  expect(await marks()).toBe(before);
  await ledger.answerIdempotent({ organizationId: "shop", key: "key", answer: "{}" });
  expect(await begin()).toMatchObject({ status: "answered" });
  expect(await marks()).toBe(before);
});

test("closing lets work under way finish, and takes no more", async () => {
  const db = await openDatabase({ url: database.url });
  const ledger = createTestLedger(db, Date.now);
  await ledger.introduce();
  const claims = Array.from({ length: 30 }, (_, index) =>
    ledger.claimAll([paymentOf(index, { amount: 1n })]),
  );
  const closing = db.destroy();
  expect((await Promise.all(claims)).map(({ outcomes }) => outcomes[0])).toEqual(claims.map(() => "claimed"));
  await closing;
  await expect(ledger.claimAll([paymentOf("late")])).rejects.toThrow();
});

test("a server of the tests leaves no process behind, however its parent ends", async () => {
  // A process that starts one, prints the pids, and is killed.
  const script = `
    import { startPostgres } from "./test/support/postgres.ts";
    const server = await startPostgres();
    console.log(server.pid);
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const pid = Number(String(line));
  expect(pid).toBeGreaterThan(1);
  child.kill("SIGKILL");
  expect(await stillRunningAfter([pid])).toEqual([]);
});

async function waitFor(condition: () => Promise<boolean>): Promise<void> {
  await expect.poll(condition, { interval: 25 }).toBe(true);
}
