import { sql } from "kysely";
import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  addressOf,
  chainId,
  createTestLedger,
  failed,
  hashOf,
  hours,
  openTestLedger,
  operator,
  paymentOf,
  settled,
  type TestClock,
  type TestLedger,
} from "../../test/support/ledger/test-ledger.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Database } from "./database/database.ts";
import type { RecoveryProof } from "./recoveries.ts";
import type { SignedAttempt } from "./settlement.ts";

const recoverer: Address = addressOf(0xec);
const at = { chainId, address: recoverer };
const never = 2 ** 50;

const proofOf = (name: string): RecoveryProof => ({
  transactionHash: hashOf(`direct submission of ${name}`),
  logIndex: 3,
  blockNumber: 58n,
});

async function signForward(txNonce: number): Promise<SignedAttempt> {
  return {
    hash: hashOf(`forward ${txNonce}`),
    raw: `0x02f0${txNonce.toString(16).padStart(2, "0")}`,
    maxFeePerGas: 100n,
    maxPriorityFeePerGas: 1n,
  };
}

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let db: Database;
  let clock: TestClock;
  let ledger: TestLedger;
  beforeEach(async () => {
    ({ db, clock, ledger } = await openTestLedger(database));
  });

  /** Claims payments, each with a transaction of its own, which is mined and reverted. */
  async function failAll(...names: string[]): Promise<Hex[]> {
    const ids: Hex[] = [];
    for (const name of names) {
      const payment = paymentOf(name);
      const { attempt } = await ledger.claimAll([payment]);
      await ledger.mine(attempt?.txNonce ?? -1, [failed(payment)]);
      ids.push(payment.id);
    }
    return ids;
  }

  async function failOne(name = "a"): Promise<Hex> {
    const [id = "0x"] = await failAll(name);
    return id;
  }

  /** A failure whose recovery is signed, with txNonce 0. */
  async function sendOne(name = "a"): Promise<Hex> {
    const id = await failOne(name);
    await ledger.queueRecovery(id, proofOf(name));
    await ledger.introduceRecoverer(chainId, recoverer, 0);
    await ledger.sendForward(at, id, signForward);
    return id;
  }

  const minedAs = (txNonce: number) => ({
    chainId,
    recoverer,
    txNonce,
    hash: hashOf(`forward ${txNonce}`),
    blockNumber: 70n,
    blockHash: hashOf("block 70"),
  });

  const takeDue = async () =>
    (await ledger.takeDueFailures(chainId, 10, clock.now() + hours)).map(({ settlement }) => settlement.id);

  describe("a failure", () => {
    test("is due at once, with the block that it was checked against", async () => {
      const id = await failOne();
      const [failure] = await ledger.takeDueFailures(chainId, 10, never);
      expect(failure).toMatchObject({
        settlement: { id, claimedBlock: 50n },
        usedByBlock: null,
        recovery: null,
      });
    });

    test("is looked at by one instance at a time, and by another when that one forgets it", async () => {
      const id = await failOne();
      const other = createTestLedger(db, clock.now, { instanceId: "instance-2" });
      const taken = await Promise.all([
        ledger.takeDueFailures(chainId, 10, clock.now() + hours),
        other.takeDueFailures(chainId, 10, clock.now() + hours),
      ]);
      expect(taken.flat().map(({ settlement }) => settlement.id)).toEqual([id]);
      clock.advance(hours);
      expect(await takeDue()).toEqual([id]);
    });

    test("is looked at again when it was said, and not after the last time", async () => {
      const id = await failOne();
      await ledger.noteLook(id, { usedByBlock: 90n, nextLookAt: clock.now() + hours });
      expect(await takeDue()).toEqual([]);
      clock.advance(hours);
      expect(await ledger.findFailure(id)).toMatchObject({ usedByBlock: 90n });
      expect(await takeDue()).toEqual([id]);
      await ledger.noteLook(id, { usedByBlock: null, nextLookAt: null });
      clock.advance(100 * hours);
      expect(await takeDue()).toEqual([]);
      expect(await ledger.openFailures(chainId, 10, null)).toEqual([]);
    });

    test("comes the sooner the longer it is overdue, and no more come than are asked for", async () => {
      const [a = "0x", b = "0x", c = "0x"] = await failAll("a", "b", "c");
      await ledger.noteLook(a, { usedByBlock: null, nextLookAt: clock.now() - 1 });
      await ledger.noteLook(b, { usedByBlock: null, nextLookAt: clock.now() - 3 });
      await ledger.noteLook(c, { usedByBlock: null, nextLookAt: clock.now() - 2 });
      const first = await ledger.takeDueFailures(chainId, 2, never);
      expect(new Set(first.map(({ settlement }) => settlement.id))).toEqual(new Set([b, c]));
    });

    test("of another chain, and what did not fail, is not to be looked at", async () => {
      const payment = paymentOf("settled");
      const { attempt } = await ledger.claimAll([payment]);
      await ledger.mine(attempt?.txNonce ?? -1, [settled(payment)]);
      await ledger.claimAll([paymentOf("submitted")]);
      await failOne("failed");
      expect(await ledger.takeDueFailures(10, 10, never)).toEqual([]);
      expect(await takeDue()).toEqual([paymentOf("failed").id]);
      expect(await ledger.findFailure(payment.id)).toBeNull();
      expect(await ledger.findFailure(hashOf("nothing"))).toBeNull();
    });

    test("all that are open are listed page by page, those with a forward under way too", async () => {
      const ids = [await sendOne("sent"), ...(await failAll("a", "b"))].sort();
      const pages = [];
      for (let after: Hex | null = null; ; ) {
        const [failure] = await ledger.openFailures(chainId, 1, after);
        if (failure === undefined) break;
        after = failure.settlement.id;
        pages.push(after);
      }
      expect(pages).toEqual(ids);
    });
  });

  describe("a queued recovery", () => {
    test("knows its proof, and takes a new one when blocks were replaced", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.queueRecovery(id, { ...proofOf("a"), blockNumber: 59n });
      expect((await ledger.findFailure(id))?.recovery).toEqual({
        proof: { ...proofOf("a"), blockNumber: 59n },
        state: "queued",
        recoverer: null,
        txNonce: null,
        problem: null,
        queuedAt: clock.now(),
      });
    });

    test("cannot have the proof of another", async () => {
      const [a = "0x", b = "0x"] = await failAll("a", "b");
      await ledger.queueRecovery(a, proofOf("a"));
      await expect(ledger.queueRecovery(b, proofOf("a"))).rejects.toThrow(/proves settlement .* already/);
      expect((await ledger.findFailure(b))?.recovery).toBeNull();
    });

    test("is none of a settlement that did not fail", async () => {
      const payment = paymentOf("a");
      await ledger.claimAll([payment]);
      await ledger.queueRecovery(payment.id, proofOf("a"));
      await ledger.mine(0, [failed(payment)]);
      expect((await ledger.findFailure(payment.id))?.recovery).toBeNull();
    });

    test("is gone when its proof has vanished", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.dropRecovery(id);
      expect((await ledger.findFailure(id))?.recovery).toBeNull();
    });

    test("says why it waits", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.postponeRecovery(id, "no gas money", clock.now() + hours);
      expect((await ledger.findFailure(id))?.recovery).toMatchObject({ problem: "no gas money" });
      expect(await takeDue()).toEqual([]);
      clock.advance(hours);
      expect(await takeDue()).toEqual([id]);
    });
  });

  describe("a forward", () => {
    test("is stored with its txNonce, and its failure is not looked at meanwhile", async () => {
      const id = await sendOne();
      expect(await ledger.openForwards(chainId, recoverer)).toMatchObject([
        {
          attempt: { ...(await signForward(0)), kind: "forward", txNonce: 0 },
          settlements: [{ id, state: "failed" }],
        },
      ]);
      expect((await ledger.findFailure(id))?.recovery).toMatchObject({
        state: "sent",
        recoverer,
        txNonce: 0,
      });
      clock.advance(100 * hours);
      expect(await takeDue()).toEqual([]);
      // A look that began before it was sent ends after it.
      await ledger.noteLook(id, { usedByBlock: null, nextLookAt: clock.now() });
      expect(await takeDue()).toEqual([]);
    });

    test("is signed once, however many try", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.introduceRecoverer(chainId, recoverer, 4);
      const other = createTestLedger(db, clock.now, { instanceId: "instance-2" });
      const signed: number[] = [];
      const sign = (txNonce: number) => {
        signed.push(txNonce);
        return signForward(txNonce);
      };
      const sent = await Promise.all([ledger.sendForward(at, id, sign), other.sendForward(at, id, sign)]);
      expect(sent.filter((one) => one !== null)).toHaveLength(1);
      expect(signed).toEqual([4]);
      expect(await ledger.nextTxNonce(chainId, recoverer)).toBe(5);
    });

    test("that is not signed leaves everything as it was", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.introduceRecoverer(chainId, recoverer, 4);
      const failing = ledger.sendForward(at, id, () => Promise.reject(new Error("the signer is away")));
      await expect(failing).rejects.toThrow("the signer is away");
      expect(await ledger.nextTxNonce(chainId, recoverer)).toBe(4);
      expect((await ledger.findFailure(id))?.recovery?.state).toBe("queued");
    });

    test("that paid makes a success that is there to be handed over", async () => {
      const id = await sendOne();
      for (const _ of ["once", "twice"]) await ledger.concludeForward(minedAs(0), id);
      expect(await ledger.find(id)).toMatchObject({
        state: "recovered",
        failure: null,
        transactionHash: hashOf("forward 0"),
        blockNumber: 70n,
        blockHash: hashOf("block 70"),
        deliveredAt: null,
      });
      expect(await ledger.openForwards(chainId, recoverer)).toEqual([]);
      expect(await ledger.openFailures(chainId, 10, null)).toEqual([]);
      await ledger.acquireLease(id, "request");
      await ledger.markDelivered(id, "request");
      expect((await ledger.find(id))?.deliveredAt).toBe(clock.now());
    });

    test("that was reverted is queued again, and goes out with a txNonce of its own", async () => {
      const id = await sendOne();
      await ledger.requeueForward(minedAs(0), id, "the forward was reverted", clock.now() + hours);
      expect((await ledger.findFailure(id))?.recovery).toMatchObject({
        state: "queued",
        problem: "the forward was reverted",
      });
      expect(await ledger.openForwards(chainId, recoverer)).toEqual([]);
      clock.advance(hours);
      expect(await takeDue()).toEqual([id]);
      expect(await ledger.sendForward(at, id, signForward)).toMatchObject({ attempt: { txNonce: 1 } });
      // Old news changes nothing any more.
      await ledger.requeueForward(minedAs(0), id, "again", clock.now());
      await ledger.concludeForward(minedAs(0), id);
      expect((await ledger.findFailure(id))?.recovery).toMatchObject({ state: "sent", txNonce: 1 });
    });

    test("may be replaced while it is open", async () => {
      await sendOne();
      const [open] = await ledger.openForwards(chainId, recoverer);
      if (open === undefined) throw new Error("nothing is open");
      const dearer = { ...open.attempt, hash: hashOf("dearer"), raw: "0x02ff" as Hex, maxFeePerGas: 200n };
      expect(await ledger.addAttempt(dearer)).toBe(true);
      const attempts = (await ledger.openForwards(chainId, recoverer)).map(({ attempt }) => attempt.hash);
      expect(attempts).toEqual([hashOf("forward 0"), hashOf("dearer")]);
      await ledger.concludeForward({ ...minedAs(0), hash: hashOf("dearer") }, paymentOf("a").id);
      expect(await ledger.addAttempt({ ...dearer, hash: hashOf("late") })).toBe(false);
    });

    test("is not mistaken for a settle of the same key", async () => {
      const id = await failOne();
      await ledger.queueRecovery(id, proofOf("a"));
      await ledger.sendForward({ chainId, address: operator }, id, signForward);
      await ledger.claimAll([paymentOf("b")]);
      const settles = await ledger.openAttempts(chainId, operator);
      expect(settles.map(({ attempt }) => attempt.txNonce)).toEqual([2]);
      const forwards = await ledger.openForwards(chainId, operator);
      expect(forwards.map(({ attempt }) => attempt.txNonce)).toEqual([1]);
    });
  });

  test("a recoverer's next txNonce follows what it sent by hand, and never goes back", async () => {
    await ledger.introduceRecoverer(chainId, recoverer, 3);
    expect(await ledger.nextTxNonce(chainId, recoverer)).toBe(3);
    await ledger.introduceRecoverer(chainId, recoverer, 5);
    expect(await ledger.nextTxNonce(chainId, recoverer)).toBe(5);
    await ledger.introduceRecoverer(chainId, recoverer, 2);
    expect(await ledger.nextTxNonce(chainId, recoverer)).toBe(5);
  });
});

describe("on SQLite", () => {
  const [sqlite] = backends;
  if (sqlite === undefined) throw new Error("there is no database");
  const database = useTestDatabase(sqlite);

  test("failures that are due are found by their index, however many settlements there are", async () => {
    const { rows } = await sql<{ detail: string }>`
      explain query plan select * from settlements
      where chain_id = ${chainId} and state = 'failed' and next_look_at <= ${0} order by next_look_at
    `.execute(await database.open());
    expect(rows.map(({ detail }) => detail)).toEqual([
      "SEARCH settlements USING INDEX settlements_failures (chain_id=? AND next_look_at<?)",
    ]);
  });
});
