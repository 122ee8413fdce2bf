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
import { archiveSettlements } from "./archive.ts";
import type { Database } from "./database/database.ts";
import { dayOf } from "./gas-spending.ts";
import type { ClaimRequest } from "./ledger.ts";
import type { LedgerTables } from "./rows.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  let opened: Database;
  let db: Kysely<LedgerTables>;
  let validBefore: bigint;

  beforeEach(async () => {
    ({ clock, ledger, db: opened } = await openTestLedger(database));
    db = opened.$extendTables<LedgerTables>();
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
  type Line = {
    kind: "settlement" | "attempt";
    row: { id: Hex; hash: Hex; tx_nonce: number; payer: string };
  };
  /** Archives, and gives what was kept. `meanwhile` is done between the keeping and the removal. */
  async function archive(before = clock.now(), meanwhile = async () => {}) {
    const lines: Line[] = [];
    const counts = await archiveSettlements(opened, before, async (kept) => {
      lines.push(...kept.map((line): Line => JSON.parse(line)));
      await meanwhile();
    });
    const of = (kind: Line["kind"]) => lines.filter((line) => line.kind === kind).map(({ row }) => row);
    return { ...counts, settlements: of("settlement"), attempts: of("attempt") };
  }
  const archivedIds = async (before?: number) =>
    (await archive(before)).settlements.map(({ id }) => id).sort();
  const attemptsLeft = async () => (await db.selectFrom("attempts").select("hash").execute()).length;

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
    expect(await archivedIds()).toEqual([...done, ended].map(({ id }) => id).sort());
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
    expect(await archivedIds()).toEqual([]);
    expect(await attemptsLeft()).toBe(1);
  });

  test("an authorization that has not expired before the moment stays, however far in the future its end is", async () => {
    await settle(
      payment("short"),
      payment("month", { window: until(validBefore + 30n * 86_400n) }),
      payment("for ever", { window: until(2n ** 256n - 1n) }),
    );
    const claimed = clock.now();
    clock.advance(40 * dayMs);
    expect(await archivedIds(claimed)).toEqual([]);
    expect(await archivedIds(claimed + dayMs)).toHaveLength(1);
    expect(await archivedIds()).toHaveLength(1);
  });

  test("removal takes the settlements, and their transactions once no settlement needs them", async () => {
    const lasting = payment("lasting", { window: until(validBefore + 90n * 86_400n) });
    await settle(payment("a"), payment("b"), lasting);
    clock.advance(30 * dayMs);
    expect(await archive()).toMatchObject({ removed: 2, attempts: [] });
    expect(await ledger.find(payment("a").id)).toBeNull();
    expect(await attemptsLeft()).toBe(1);

    clock.advance(90 * dayMs);
    expect(await archive()).toMatchObject({ removed: 1, attempts: [{ tx_nonce: 0 }] });
    expect(await attemptsLeft()).toBe(0);
    expect(await ledger.list({}, { limit: 10 })).toEqual({ settlements: [], next: null });
    // The operator goes on where it was.
    expect(await ledger.nextTxNonce(chainId, operator)).toBe(1);
    expect(await claim([payment("new", { payer: 2 })])).toBe(1);
  });

  test("what has changed since it was read stays", async () => {
    await settle(payment("a"), payment("b"));
    clock.advance(30 * dayMs);
    const reopen = () =>
      ledger.reopenSettles(chainId, operator, [{ txNonce: 0, blockHash: hashOf("block 60") }]);
    expect(await archive(undefined, async () => void (await reopen()))).toMatchObject({
      kept: 2,
      removed: 0,
    });
    expect(await ledger.find(payment("a").id)).toMatchObject({ state: "submitted" });
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
    await archive(clock.now() - 1);
    expect([await payers(), await days()]).toEqual([1, 1]);

    await claim([payment("again", { payer: 1 })]);
    expect(await payers()).toBe(2);
  });

  test("what another process has removed meanwhile is removed once, and nothing is removed that could not be kept", async () => {
    const one = payment("a", { payer: 7 });
    await settle(one);
    clock.advance(30 * dayMs);
    await expect(
      archiveSettlements(opened, clock.now(), () => Promise.reject(new Error("the disk is full"))),
    ).rejects.toThrow("the disk is full");
    expect(await ledger.find(one.id)).not.toBeNull();
    const other = async () => void (await archiveSettlements(opened, clock.now(), async () => {}));
    const { kept, removed, settlements } = await archive(undefined, other);
    expect({ kept, removed }).toEqual({ kept: 1, removed: 0 });
    expect(addressOf(7)).toBe(settlements[0]?.payer);
    expect(await archive()).toMatchObject({ kept: 0 });
  });
});
