import type { Kysely } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import type { LedgerTables } from "../../../src/ledger/rows.ts";
import { composeRecovery, type RecoveryScene, value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";

/*
 * The contract forwards no more of a token than its limit, so that whoever holds the recoverer's key, or deceives its
 * holder, cannot take all that is stranded at once.
 */

let scene: RecoveryScene;
beforeAll(async () => {
  scene = await composeRecovery();
});
afterAll(() => scene.close());

let snapshot: unknown;
let forwardsBefore = 0;
beforeEach(async () => {
  // What one test forwards would count in the next.
  snapshot = await scene.chain.node.request("evm_snapshot");
  await scene.openDirectory();
  forwardsBefore = await scene.recovererTransactions();
});
afterEach(async () => {
  await scene.clear();
  await scene.chain.node.request("evm_revert", snapshot);
});

const forwards = async () => (await scene.recovererTransactions()) - forwardsBefore;
const setLimit = (limit: bigint) => scene.mine(scene.ofAdminLimit(limit));

async function untilPutOff(body: Body, reason: string): Promise<void> {
  await expect
    .poll(async () => await scene.recoveryOf(body))
    .toMatchObject({ state: "queued", problem: expect.stringContaining(reason) });
}

test("a payment above what is left of the limit waits with the reason, until the admin raises it", async () => {
  const service = await scene.startService({ settleWaitMs: 1_000 });
  await setLimit(value + 1n);
  const first = await scene.sign("funded");
  await scene.settleBehind(service, first, scene.submission(first));
  await scene.untilState(service, first, "recovered");

  const second = await scene.sign("funded");
  await scene.settleBehind(service, second, scene.submission(second));
  await untilPutOff(
    second,
    "left of the contract's forward limit, 0.010001 USDC, which comes back within 24 hours",
  );
  await scene.severalRounds();
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
  expect(await forwards()).toBe(1);

  await setLimit(3n * value);
  await scene.untilState(service, second, "recovered");
  expect(await scene.balanceOf(scene.recipient())).toBe(2n * value);
  expect(await forwards()).toBe(2);
});

test("a payment above the whole limit says that only the admin can help", async () => {
  const service = await scene.startService({ settleWaitMs: 1_000 });
  await setLimit(value - 1n);
  const body = await scene.sign("funded");
  await scene.settleBehind(service, body, scene.submission(body));
  await untilPutOff(
    body,
    "its 0.01 USDC are more than the contract's forward limit, 0.009999 USDC: the admin has to raise it",
  );
  expect(await forwards()).toBe(0);
  await setLimit(100n * value);
  await scene.untilState(service, body, "recovered");
});

test("what is under way counts: nothing is sent that the limit would revert", async () => {
  const service = await scene.startService({ settleWaitMs: 1_000 });
  await setLimit((value * 3n) / 2n);
  const bodies = [await scene.sign("funded"), await scene.sign("funded")];
  const release = await scene.holdMining();
  for (const body of bodies) {
    await scene.settleInPool(service, body);
    await scene.sendAhead(scene.submission(body));
  }
  await scene.chain.node.request("evm_mine");
  await scene.untilInPool(1);
  const problems = async () =>
    Promise.all(bodies.map(async (body) => (await scene.recoveryOf(body))?.problem ?? null));
  await expect.poll(problems).toContainEqual(expect.stringContaining("left of the"));
  expect(await scene.inPool()).toBe(1);
  await release();
  await setLimit(100n * value);
  for (const body of bodies) await scene.untilState(service, body, "recovered");
  expect(await scene.balanceOf(scene.recipient())).toBe(2n * value);
  expect(await forwards()).toBe(2);
});

test("a forward that reverts when it is mined is sent again, ever more rarely", async () => {
  const service = await scene.startService({ settleWaitMs: 1_000 });
  const body = await scene.sign("funded");
  const { release } = await scene.forwardInPool(service, body);
  await failedTenDaysAgo(body);
  await scene.sendAhead(scene.ofAdminLimit(0n));
  await scene.chain.node.request("evm_mine");
  await release();
  const start = Date.now();
  await expect.poll(async () => (await scene.recoveryOf(body))?.state).toBe("queued");
  const { next_look_at } = await rowOf(body);
  expect(Math.round(((next_look_at ?? 0) - start) / hour)).toBe(6);
});

const hour = 60 * 60 * 1000;

async function inDatabase<Result>(ask: (db: Kysely<LedgerTables>) => Promise<Result>): Promise<Result> {
  const db = await openDatabase({ url: scene.databaseUrl() });
  try {
    return await ask(db.withTables<LedgerTables>());
  } finally {
    await db.destroy();
  }
}

const failedTenDaysAgo = (body: Body) =>
  inDatabase((db) =>
    db
      .updateTable("settlements")
      .set(({ eb }) => ({ concluded_at: eb("concluded_at", "-", 240 * hour) }))
      .where("id", "=", scene.idOf(body))
      .execute(),
  );

const rowOf = (body: Body) =>
  inDatabase((db) =>
    db.selectFrom("settlements").selectAll().where("id", "=", scene.idOf(body)).executeTakeFirstOrThrow(),
  );
