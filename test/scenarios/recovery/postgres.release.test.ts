import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { backends } from "../../support/databases.ts";
import { composeRecovery, type RecoveryScene, value } from "../../support/recovery-scene.ts";

/*
 * A few ways of a recovery on Postgres, where several instances share it. All of them are in recovery.test.ts.
 */

const postgres = backends.find(({ name }) => name === "Postgres");
let databases: { createEmpty(): Promise<string>; end(): Promise<void> };
let scene: RecoveryScene;
beforeAll(async () => {
  if (postgres === undefined) throw new Error("there is no Postgres to test on");
  [scene, databases] = await Promise.all([composeRecovery(), postgres.prepare()]);
});
afterAll(async () => {
  await scene.close();
  await databases.end();
});
let forwardsBefore = 0;
beforeEach(async () => {
  await scene.openDirectory(await databases.createEmpty());
  forwardsBefore = await scene.recovererTransactions();
});
afterEach(() => scene.clear());

async function expectPaidOnce(): Promise<void> {
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
  expect((await scene.recovererTransactions()) - forwardsBefore).toBe(1);
}

test("a payment that a third party submitted is paid within the same answer, once, by one of three", async () => {
  const first = await scene.startService();
  await Promise.all([scene.startService(), scene.startService()]);
  const body = await scene.sign("funded");
  expect((await scene.settleBehind(first, body, scene.submission(body))).body).toMatchObject({
    success: true,
  });
  await scene.severalRounds();
  await expectPaidOnce();
  expect(await scene.settlement(first, body)).toMatchObject({ state: "recovered" });
});

test("one that an instance without the key finds is paid by another with it, and handed over once", async () => {
  const without = await scene.startService({ recovers: false });
  const body = await scene.sign("funded");
  expect((await scene.settleBehind(without, body, scene.submission(body))).body).toMatchObject({
    success: false,
  });
  const other = await scene.startService();
  await scene.untilState(other, body, "recovered");
  await expectPaidOnce();
  const answers = await Promise.all(
    [without, other].map(async (running) => (await scene.post(running, "settle", body)).body),
  );
  expect(answers.map((answer) => (answer as { success: boolean }).success).sort()).toEqual([false, true]);
});

test("a forward that is in the pool when its instance ends is concluded by the next", async () => {
  const first = await scene.startService({ settleWaitMs: 20_000 });
  const body = await scene.sign("funded");
  const { answer, release } = await scene.forwardInPool(first, body);
  await scene.end(first);
  expect((await answer).status).toBe(503);
  await release();
  const next = await scene.startService();
  await scene.untilState(next, body, "recovered");
  await expectPaidOnce();
});
