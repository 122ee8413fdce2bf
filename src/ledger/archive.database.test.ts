import type { Kysely } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  addressOf,
  chainId,
  failed,
  hashOf,
  openTestLedger,
  operator,
  paymentOf,
  settled,
  type TestClock,
  type TestLedger,
  until,
} from "../../test/support/ledger/test-ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import { dayMs } from "../protocol/moments.ts";
import { createLedgerArchive, type LedgerArchive, serializeRow } from "./archive.ts";
import { dayOf } from "./gas-spending.ts";
import type { ClaimRequest } from "./ledger.ts";
import type { LedgerTables } from "./rows.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  let archive: LedgerArchive;
  let db: Kysely<LedgerTables>;
  let validBefore: bigint;

  beforeEach(async () => {
    const opened = await openTestLedger(database);
    ({ clock, ledger } = opened);
    db = opened.db.$extendTables<LedgerTables>();
    archive = createLedgerArchive(opened.db);
    validBefore = BigInt(clock.now()) / 1_000n + 60n;
  });

  const payment = (name: string, changes: Parameters<typeof paymentOf>[1] = {}) =>
    paymentOf(name, { window: until(validBefore), amount: 1n, ...changes });

  async function claim(claims: readonly ClaimRequest[]): Promise<number> {
    const { attempt } = await ledger.claimAll(claims);
    return attempt?.txNonce ?? -1;
  }
  async function deliver(id: Hex) {
    await ledger.acquireLease(id, "shop");
    await ledger.markDelivered(id, "shop");
  }
  async function settle(...claims: ClaimRequest[]) {
    await ledger.mine(await claim(claims), claims.map(settled));
    for (const { id } of claims) await deliver(id);
  }
  /** The ids of everything that may go, read in pages of two. */
  async function findAll(before = clock.now()) {
    const rows: Awaited<ReturnType<LedgerArchive["findSettlements"]>>["rows"] = [];
    let after: Parameters<LedgerArchive["findSettlements"]>[1]["after"] = null;
    do {
      const page = await archive.findSettlements(before, { limit: 2, after });
      rows.push(...page.rows);
      after = page.next;
    } while (after !== null);
    return rows;
  }
  const idsOf = async (before?: number) => (await findAll(before)).map(({ id }) => id).sort();
  const removeAll = async () =>
    archive.removeSettlements(new Map((await findAll()).map((row) => [row.id, serializeRow(row)])));
  const attemptsOf = (txNonce: number) =>
    archive.findAttempts([
      { chain_id: chainId, operator: `0x${operator.slice(2).toLowerCase()}`, tx_nonce: txNonce },
    ]);
  async function removeAttempts(txNonce: number) {
    const rows = await attemptsOf(txNonce);
    return archive.removeAttempts(new Map(rows.map((row) => [row.hash, serializeRow(row)])));
  }

  test("what may go: settled and handed over, and failures that are at their end", async () => {
    const done = [payment("a"), payment("b"), payment("c")];
    await settle(...done);
    const [open, undelivered, watched, ended] = ["open", "undelivered", "watched", "ended"].map((name) =>
      payment(name),
    );
    if (!open || !undelivered || !watched || !ended) throw new Error("too few");
    await claim([open]);
    await ledger.mine(await claim([undelivered]), [settled(undelivered)]);
    await ledger.mine(await claim([watched, ended]), [failed(watched), failed(ended)]);
    await ledger.noteLook(ended.id, { usedByBlock: null, nextLookAt: null });

    clock.advance(30 * dayMs);
    expect(await idsOf()).toEqual([...done, ended].map(({ id }) => id).sort());
  });

  test("a recovered payment stays, with the proof of what was paid out for it", async () => {
    const one = payment("recovered");
    await ledger.mine(await claim([one]), [failed(one)]);
    await ledger.queueRecovery(one.id, { transactionHash: hashOf("direct"), logIndex: 3, blockNumber: 61n });
    await ledger.correctFailure(one.id, "recovered", {
      hash: hashOf("forward"),
      blockNumber: 70n,
      blockHash: hashOf("block"),
    });
    await deliver(one.id);
    clock.advance(30 * dayMs);
    expect(await idsOf()).toEqual([]);
  });

  test("an authorization that has not expired before the moment stays, however far in the future its end is", async () => {
    await settle(
      payment("short"),
      payment("month", { window: until(validBefore + 30n * 86_400n) }),
      payment("for ever", { window: until(2n ** 256n - 1n) }),
    );
    const claimed = clock.now();
    clock.advance(40 * dayMs);
    expect(await idsOf(claimed)).toEqual([]);
    expect(await idsOf(claimed + dayMs)).toHaveLength(1);
    expect(await idsOf()).toHaveLength(2);
  });

  test("removal takes the settlements, and their transactions once no settlement needs them", async () => {
    const lasting = payment("lasting", { window: until(validBefore + 90n * 86_400n) });
    await settle(payment("a"), payment("b"), lasting);
    clock.advance(30 * dayMs);
    expect(await removeAll()).toBe(2);
    expect(await ledger.find(payment("a").id)).toBeNull();
    expect(await removeAttempts(0)).toBe(0);

    clock.advance(90 * dayMs);
    expect(await removeAll()).toBe(1);
    expect(await removeAttempts(0)).toBe(1);
    expect(await attemptsOf(0)).toEqual([]);
    expect(await ledger.list({}, { limit: 10 })).toEqual({ settlements: [], next: null });
    // The operator goes on where it was.
    expect(await ledger.nextTxNonce(chainId, operator)).toBe(1);
    expect(await claim([payment("new", { payer: 2 })])).toBe(1);
  });

  test("what has changed since it was read stays", async () => {
    await settle(payment("a"), payment("b"));
    clock.advance(30 * dayMs);
    const kept = new Map((await findAll()).map((row) => [row.id, serializeRow(row)]));
    await ledger.reopenSettles(chainId, operator, [{ txNonce: 0, blockHash: hashOf("block 60") }]);
    expect(await archive.removeSettlements(kept)).toBe(0);
    expect(await ledger.find(payment("a").id)).toMatchObject({ state: "submitted" });
    expect(await removeAttempts(0)).toBe(0);
    expect(await ledger.openAttempts(chainId, operator)).toHaveLength(1);
  });

  test("payers and what days have cost go too, except what is newer, and come back with the next payment", async () => {
    const payers = async () => (await db.selectFrom("accounts").select("payer").execute()).length;
    const days = async () => (await db.selectFrom("gas_spending").select("day").execute()).length;
    const spend = (day: number) =>
      db
        .insertInto("gas_spending")
        .values({ organization_id: "shop", network: "base", day, gwei: 1, gwei_with_code: 0 })
        .execute();
    const old = { chain_id: chainId, asset: addressOf(1), claimed_at: clock.now() };
    for (let piece = 0; piece < 12; piece++) {
      const rows = Array.from({ length: 500 }, (_, index) => ({
        ...old,
        payer: addressOf(10_000 + 500 * piece + index),
      }));
      await db.insertInto("accounts").values(rows).execute();
    }
    await claim([payment("a", { payer: 1 })]);
    await spend(dayOf(clock.now()));
    clock.advance(30 * dayMs);
    await claim([payment("new", { payer: 9_000 })]);
    await spend(dayOf(clock.now()));
    expect([await payers(), await days()]).toEqual([6_002, 2]);
    await archive.removeNotes(clock.now());
    expect([await payers(), await days()]).toEqual([1, 1]);

    await claim([payment("again", { payer: 1 })]);
    expect(await payers()).toBe(2);
  });

  test("removing twice, or what is in no ledger, removes nothing", async () => {
    await settle(payment("a", { payer: 7 }));
    clock.advance(30 * dayMs);
    const kept = new Map((await findAll()).map((row) => [row.id, serializeRow(row)]));
    expect(await archive.removeSettlements(kept)).toBe(1);
    expect(await archive.removeSettlements(kept)).toBe(0);
    expect(await archive.removeSettlements(new Map([[hashOf("unknown"), "{}"]]))).toBe(0);
    expect(await archive.removeAttempts(new Map())).toBe(0);
    expect(addressOf(7)).toBe(JSON.parse([...kept.values()][0] ?? "{}").payer);
  });
});
