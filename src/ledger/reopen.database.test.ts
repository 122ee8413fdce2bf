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
  signAsIf,
  type TestClock,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";

const blockOf = (number: number) => hashOf(`block ${number}`);

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let clock: TestClock;
  let ledger: TestLedger;
  beforeEach(async () => {
    ({ clock, ledger } = await openTestLedger(database));
  });

  const vanish = (txNonce: number, block: number) =>
    ledger.reopenSettles(chainId, operator, [{ txNonce, blockHash: blockOf(block) }]);

  test("what was decided in a block that vanished is undecided again, and its transaction may be mined", async () => {
    const [a, b] = [paymentOf("a"), paymentOf("b", { payer: 2 })];
    await ledger.claimAll([a, b]);
    await ledger.mine(0, [settled(a), failed(b)]);
    await vanish(0, 60);
    for (const { id } of [a, b]) {
      expect(await ledger.find(id)).toMatchObject({
        state: "submitted",
        failure: expect.stringContaining("vanished"),
        blockNumber: null,
        blockHash: null,
        concludedAt: null,
      });
    }
    const [open] = await ledger.openAttempts(chainId, operator);
    expect(open?.attempt.hash).toBe(hashOf("transaction 0"));
    expect(open?.settlements).toHaveLength(2);
    await ledger.mine(0, [settled(a), settled(b)], 63n);
    expect(await ledger.find(b.id)).toMatchObject({ state: "settled", failure: null, blockNumber: 63n });
    expect(await ledger.openAttempts(chainId, operator)).toEqual([]);
  });

  test("a success that was handed over is not there to be handed over again", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    await ledger.mine(0, [settled(a)]);
    await ledger.acquireLease(a.id, "request");
    await ledger.markDelivered(a.id, "request");
    await vanish(0, 60);
    await ledger.mine(0, [settled(a)], 63n);
    expect((await ledger.find(a.id))?.deliveredAt).toBe(clock.now());
  });

  test("nor is one whose block vanished while it was being handed over", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    await ledger.mine(0, [settled(a)]);
    await ledger.acquireLease(a.id, "request");
    await vanish(0, 60);
    await ledger.markDelivered(a.id, "request");
    await ledger.mine(0, [settled(a)], 63n);
    expect((await ledger.find(a.id))?.deliveredAt).toBe(clock.now());
  });

  test("its value counts against the payer's balance again, and its gas is charged once", async () => {
    const a = paymentOf("a", { amount: 95n });
    await ledger.claimAll([a]);
    await ledger.mine(0, [settled(a)], 60n, 5_000_000_000n);
    await vanish(0, 60);
    const { outcomes } = await ledger.claimAll([paymentOf("b", { balanceBlock: 70n })]);
    expect(outcomes).toEqual(["over_balance"]);
    const { spent } = await ledger.gasSpending("org_shop", "base");
    await ledger.mine(0, [settled(a)], 63n, 5_000_000_000n);
    expect((await ledger.gasSpending("org_shop", "base")).spent).toEqual(spent);
  });

  test("one that another instance has seen in its new block stays as it is", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    await ledger.mine(0, [settled(a)], 60n);
    await vanish(0, 59);
    expect(await ledger.find(a.id)).toMatchObject({ state: "settled", blockNumber: 60n });
    expect(await ledger.openAttempts(chainId, operator)).toEqual([]);
  });

  test("a failure that is being recovered stays with its recovery", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    await ledger.mine(0, [failed(a)]);
    await ledger.queueRecovery(a.id, { transactionHash: hashOf("direct"), logIndex: 1, blockNumber: 55n });
    await vanish(0, 60);
    expect(await ledger.find(a.id)).toMatchObject({ state: "failed" });
  });

  test("a forward whose block vanished is under way again, and its settlement no success", async () => {
    const a = paymentOf("a");
    const recoverer = addressOf(0x2e);
    const mined = {
      chainId,
      recoverer,
      txNonce: 0,
      hash: hashOf("forward"),
      blockNumber: 70n,
      blockHash: blockOf(70),
    };
    await ledger.claimAll([a]);
    await ledger.mine(0, [failed(a)]);
    await ledger.queueRecovery(a.id, { transactionHash: hashOf("direct"), logIndex: 1, blockNumber: 55n });
    await ledger.introduceRecoverer(chainId, recoverer, 0);
    const sign = async () => ({ ...(await signAsIf(0)), hash: hashOf("forward") });
    await ledger.sendForward({ chainId, address: recoverer }, a.id, sign);
    await ledger.concludeForward(mined, a.id);
    expect(await ledger.concludedForwards(chainId, recoverer, { limit: 5 })).toMatchObject([
      { txNonce: 0, hash: hashOf("forward"), blockNumber: 70n, blockHash: blockOf(70) },
    ]);
    await ledger.reopenForwards(chainId, recoverer, [{ txNonce: 0, blockHash: blockOf(70) }]);
    expect((await ledger.findFailure(a.id))?.recovery).toMatchObject({ state: "sent" });
    expect(await ledger.openForwards(chainId, recoverer)).toHaveLength(1);
    await ledger.concludeForward({ ...mined, blockNumber: 72n, blockHash: blockOf(72) }, a.id);
    expect(await ledger.find(a.id)).toMatchObject({ state: "recovered", failure: null, blockNumber: 72n });
  });

  test("decided transactions are listed from the highest txNonce on, one for each", async () => {
    for (const [txNonce, block] of [60n, 61n, 61n].entries()) {
      const payments = ["a", "b"].map((name) => paymentOf(`${name}${txNonce}`, { payer: txNonce + 1 }));
      await ledger.claimAll(payments);
      await ledger.mine(txNonce, payments.map(settled), block);
    }
    await ledger.claimAll([paymentOf("open", { payer: 9 })]);
    const list = async (range: { from?: number; below?: number; limit: number }) =>
      (await ledger.concludedSettles(chainId, operator, range)).map(({ txNonce, blockNumber, hash }) => [
        txNonce,
        blockNumber,
        hash,
      ]);
    const of = (txNonce: number, block: bigint) => [txNonce, block, hashOf(`transaction ${txNonce}`)];
    expect(await list({ limit: 2 })).toEqual([of(2, 61n), of(1, 61n)]);
    expect(await list({ below: 2, limit: 2 })).toEqual([of(1, 61n), of(0, 60n)]);
    expect(await list({ from: 1, below: 2, limit: 9 })).toEqual([of(1, 61n)]);
  });

  test("payments of one txNonce that different blocks decided are listed by their blocks, and a page holds both", async () => {
    const [a, b] = [paymentOf("a"), paymentOf("b", { payer: 2 })];
    const earlier = paymentOf("earlier", { payer: 3 });
    await ledger.claimAll([earlier]);
    await ledger.claimAll([a, b]);
    await ledger.mine(0, [settled(earlier)], 60n);
    await ledger.mine(1, [settled(a), failed(b)], 61n);
    const paidBefore = { hash: hashOf("0"), blockNumber: 59n, blockHash: blockOf(59) };
    await ledger.correctFailure(b.id, "settled", paidBefore);
    const page = await ledger.concludedSettles(chainId, operator, { limit: 1 });
    const blocks = page.map(({ txNonce, blockNumber, blockHash }) => [txNonce, blockNumber, blockHash]);
    expect(blocks).toEqual([
      [1, 61n, blockOf(61)],
      [1, 59n, blockOf(59)],
    ]);
  });

  test("failures that are being recovered are not listed, and take no place in a page", async () => {
    const [a, b] = [paymentOf("a"), paymentOf("b", { payer: 2 })];
    await ledger.claimAll([a]);
    await ledger.claimAll([b]);
    await ledger.mine(0, [settled(a)], 60n);
    await ledger.mine(1, [failed(b)], 61n);
    await ledger.queueRecovery(b.id, { transactionHash: hashOf("direct"), logIndex: 1, blockNumber: 55n });
    const page = await ledger.concludedSettles(chainId, operator, { limit: 1 });
    expect(page.map(({ txNonce }) => txNonce)).toEqual([0]);
  });

  test("two instances that sign the same replacement at once store it once, and both go on", async () => {
    await ledger.claimAll([paymentOf("a")]);
    const [open] = await ledger.openAttempts(chainId, operator);
    if (open === undefined) throw new Error("nothing is open");
    const replacement = { ...open.attempt, hash: hashOf("replacement") };
    const stored = await Promise.all([1, 2].map(() => ledger.addAttempt(replacement)));
    expect(stored).toEqual([true, true]);
    expect(await ledger.openAttempts(chainId, operator)).toHaveLength(2);
  });

  test("a txNonce that nothing needs is filled with a no-op once, and never while it is open", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    const at = { chainId, operator, txNonce: 0 };
    const sign = async () => ({ ...(await signAsIf(0)), hash: hashOf("no-op") });
    expect(await ledger.fillTxNonce(at, sign)).toBeNull();
    const redriven = (txNonce: number) => signAsIf(txNonce);
    await ledger.redrive({ ...at, mined: null }, [a.id], redriven);
    expect(await ledger.fillTxNonce(at, sign)).toMatchObject({ attempt: { kind: "noop", txNonce: 0 } });
    expect(await ledger.fillTxNonce(at, sign)).toBeNull();
    await ledger.conclude({ ...at, hash: hashOf("no-op"), blockNumber: 61n, blockHash: blockOf(61) }, []);
    const again = await ledger.fillTxNonce(at, () => Promise.reject(new Error("one is stored")));
    expect(again).toMatchObject({ attempt: { hash: hashOf("no-op") } });
  });

  test("is not filled where a payment was decided, in a newer block than the one that was asked about", async () => {
    const a = paymentOf("a");
    await ledger.claimAll([a]);
    const at = { chainId, operator, txNonce: 0 };
    const { hash } = await signAsIf(0);
    await ledger.conclude({ ...at, hash, blockNumber: 60n, blockHash: blockOf(60) }, [
      { id: a.id, state: "settled" },
    ]);
    await ledger.reopenSettles(chainId, operator, [{ txNonce: 0, blockHash: blockOf(59) }]);
    const noop = () => Promise.reject(new Error("a no-op was signed"));
    expect(await ledger.fillTxNonce(at, noop)).toBeNull();
  });

  test("is filled where its payment was made by a transaction of another txNonce, which stands", async () => {
    const [earlier, a] = [paymentOf("earlier"), paymentOf("a", { payer: 2 })];
    await ledger.claimAll([earlier]);
    await ledger.claimAll([a]);
    await ledger.mine(0, [settled(earlier)], 59n);
    await ledger.mine(1, [failed(a)], 60n);
    const paidBefore = { hash: hashOf("transaction 0"), blockNumber: 59n, blockHash: blockOf(59) };
    await ledger.correctFailure(a.id, "settled", paidBefore);
    const decided = await ledger.concludedSettles(chainId, operator, { limit: 2 });
    expect(decided.map(({ txNonce, hasThisTxNonce }) => [txNonce, hasThisTxNonce])).toEqual([
      [1, false],
      [0, true],
    ]);
    const sign = async () => ({ ...(await signAsIf(1)), hash: hashOf("no-op") });
    const filled = await ledger.fillTxNonce({ chainId, operator, txNonce: 1 }, sign);
    expect(filled).toMatchObject({ attempt: { kind: "noop", txNonce: 1 }, settlements: [] });
    expect(await ledger.find(a.id)).toMatchObject({ state: "settled" });
  });
});
