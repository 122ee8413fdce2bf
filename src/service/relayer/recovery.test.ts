import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  addressOf,
  createClock,
  createTestLedger,
  failed,
  hashOf,
  hours,
  paymentOf,
  seconds,
  signAsIf,
  until,
} from "../../../test/support/ledger/test-ledger.ts";
import type { Chain } from "../../chain/chain.ts";
import type { Database } from "../../ledger/database/database.ts";
import { migrate, openDatabase } from "../../ledger/database/open-database.ts";
import type { Payout, Search, Settling, TransferPlace } from "../../methods/on-chain/settling.ts";
import { type WaysToPay, waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import { networks } from "../../protocol/networks.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { createRecovery, type RecoveryLoop } from "./recovery.ts";

/*
 * How long, and how often, a failure is looked at. The payment's authorization is valid before 1,900,000,000, and it
 * was claimed at block 50.
 */

const validBefore = 1_900_000_000n;
const payment = paymentOf("a", { window: until(validBefore) });
const { id } = payment;
const confirmations = 3;

/** The state of the chain. */
let head: { number: bigint; timestamp: bigint; baseFeePerGas: bigint };
let used: boolean;
let found: TransferPlace | "cancelled" | null | Error;
let replaced: boolean;
let payout: Payout | null;
let blockTime: bigint;
let searches: { fromBlock: bigint; toBlock: bigint }[];

// Of the chain nothing is needed but what a look asks.
const chain: Chain = {
  network: {
    ...networks.base,
    facilitatorContract: addressOf(0xc0),
    rpcUrls: ["http://127.0.0.1:1"],
    forwardEndpoints: 1,
    assets: [networks.base.usdc],
    confirmations,
    maxFeePerGas: 1n,
  },
  head: async () => head,
  blockHash: async (number: bigint) => hashOf(replaced ? "another block" : `block ${number}`),
  blockTime: async () => blockTime,
  endpoints: () => [{ ...chain, endpoint: "1" }],
} as unknown as Chain;

const settling = {
  stateOf: async () => ({ used }),
  findPayout: async () => payout,
  recovery: {
    async findDirectSubmission(_: unknown, { fromBlock, toBlock }: Search) {
      searches.push({ fromBlock, toBlock });
      if (found instanceof Error) throw found;
      return found;
    },
  },
} as unknown as Settling;
const ways: WaysToPay = {
  ...waysToPay,
  settlingOf: () => settling,
  knows: () => true,
};

let db: Database;
let clock: ReturnType<typeof createClock>;
let ledger: ReturnType<typeof createTestLedger>;
let recovery: RecoveryLoop;

beforeEach(async () => {
  head = { number: 10_000n, timestamp: validBefore - 60n, baseFeePerGas: 1n };
  used = false;
  found = null;
  replaced = false;
  payout = null;
  blockTime = head.timestamp;
  searches = [];
  db = await openDatabase({ url: "sqlite::memory:" });
  await migrate(db);
  clock = createClock();
  ledger = createTestLedger(db, clock.now);
  await ledger.introduce();
  const { attempt } = await ledger.claimAll([payment]);
  await ledger.mine(attempt?.txNonce ?? -1, [failed(payment)]);
  const log = createLogger("silent");
  recovery = createRecovery({ chain, ledger, ways, recoverer: undefined, now: clock.now, log });
});
afterEach(() => db.destroy());

const nextLook = async () => (await ledger.findFailure(id))?.nextLookAt;
const submittedIn = (blockNumber: bigint): TransferPlace => ({
  transactionHash: hashOf("direct submission"),
  logIndex: 4,
  blockNumber,
  blockHash: hashOf(`block ${blockNumber}`),
});

describe("while the authorization is not used", () => {
  test("it is failed, and looked at again, the later the older it is", async () => {
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect(await nextLook()).toBe(clock.now() + 4 * seconds);
    clock.advance(8 * hours);
    await recovery.consider(id);
    expect(await nextLook()).toBe(clock.now() + hours);
    clock.advance(1_000 * hours);
    await recovery.consider(id);
    expect(await nextLook()).toBe(clock.now() + 6 * hours);
  });

  test("it is looked at for the last time half an hour after its time is over", async () => {
    head.timestamp = validBefore + 1_799n;
    await recovery.consider(id);
    expect(await nextLook()).not.toBeNull();
    head.timestamp = validBefore + 1_800n;
    expect(await recovery.consider(id)).toEqual({ outcome: "expired" });
    expect(await nextLook()).toBeNull();
    searches = [];
    expect(await recovery.consider(id)).toEqual({ outcome: "expired" });
    expect(searches).toEqual([]);
  });
});

test("while the block of its transaction is replaced, it is no failure: the transaction is sent again", async () => {
  replaced = true;
  await expect(recovery.consider(id)).rejects.toThrow(UndeterminedError);
  replaced = false;
  expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
});

describe("when the authorization was used", () => {
  beforeEach(() => {
    used = true;
  });

  test("in blocks that are not deep enough, nothing is known, and it is looked at a block later", async () => {
    await expect(recovery.consider(id)).rejects.toThrow(UndeterminedError);
    expect(await nextLook()).toBe(clock.now() + 2 * seconds);
    expect(searches).toEqual([{ fromBlock: 0n, toBlock: 9_998n }]);
    head.number = 10_002n;
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
  });

  test("a round on the timer remembers in which block, and comes back a block later", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      await recovery.start();
      clock.advance(4 * seconds);
      await vi.advanceTimersByTimeAsync(4 * seconds);
      vi.useRealTimers();
      await expect.poll(async () => (await ledger.findFailure(id))?.usedByBlock).toBe(10_000n);
      expect(await nextLook()).toBe(clock.now() + 2 * seconds);
    } finally {
      vi.useRealTimers();
      await recovery.stop();
    }
  });

  test("for something else, it is failed, and looked at until its block cannot be replaced", async () => {
    await expect(recovery.consider(id)).rejects.toThrow(UndeterminedError);
    head.number = 10_000n + 2n + 899n;
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect(await nextLook()).not.toBeNull();
    head.number++;
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect(await nextLook()).toBeNull();
  });

  const paidIn = (kind: Payout["kind"], blockNumber: bigint): Payout => ({
    kind,
    hash: hashOf("our transaction"),
    blockNumber,
    blockHash: hashOf(`block ${blockNumber}`),
  });

  test("by a transaction of ours whose receipt was not seen: it is settled, and not failed", async () => {
    payout = paidIn("settled", 60n);
    await expect(recovery.consider(id)).rejects.toThrow(UndeterminedError);
    head.number = 10_002n;
    expect(await recovery.consider(id)).toEqual({ outcome: "recovered" });
    expect(await ledger.find(id)).toMatchObject({
      state: "settled",
      failure: null,
      transactionHash: hashOf("our transaction"),
      blockNumber: 60n,
      deliveredAt: null,
    });
  });

  test("by a transaction before the claim: it stays failed", async () => {
    payout = paidIn("settled", 50n);
    head.number = 10_002n;
    await expect(recovery.consider(id)).rejects.toThrow(UndeterminedError);
    head.number = 10_004n;
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
  });

  test("and a forward whose receipt was not seen has paid it: it is recovered, and not queued for ever", async () => {
    found = submittedIn(51n);
    expect(await recovery.consider(id)).toEqual({ outcome: "queued" });
    const recoverer = { chainId: networks.base.chainId, address: addressOf(0x2e) };
    await ledger.introduceRecoverer(recoverer.chainId, recoverer.address, 0);
    await ledger.sendForward(recoverer, id, async (txNonce) => signAsIf(txNonce + 100));
    const lost = { chainId: recoverer.chainId, recoverer: recoverer.address, txNonce: 0, hash: null };
    await ledger.requeueForward(lost, id, "another transaction took its txNonce", clock.now());
    payout = paidIn("forwarded", 70n);
    const failure = await ledger.findFailure(id);
    expect(failure && (await recovery.followUp(failure))).toEqual({ outcome: "recovered" });
    expect(await ledger.find(id)).toMatchObject({ state: "recovered", blockNumber: 70n, failure: null });
  });

  test("to cancel it, it is failed at once", async () => {
    found = "cancelled";
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect((await ledger.findFailure(id))?.recovery).toBeNull();
  });

  test.each([49n, 50n])("in block %i, before the claim or in its block: never queued", async (block) => {
    found = submittedIn(block);
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect((await ledger.findFailure(id))?.recovery).toBeNull();
  });

  test.each(["submitted directly", "paid straight"])(
    "well before the claim, as its time shows, though an endpoint said then that the chain was not there yet: %s",
    async (how) => {
      if (how === "paid straight") payout = paidIn("settled", 60n);
      else found = submittedIn(60n);
      head.number = 10_002n;
      clock.advance(10 * seconds);
      // Twenty seconds between the block and the claim are too many, whatever the clocks say.
      blockTime = BigInt(clock.now() / 1000 - 10 - 20);
      head.timestamp = blockTime + 30n;
      await recovery.consider(id).catch(() => {});
      head.number += 10n;
      expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
      expect((await ledger.findFailure(id))?.recovery).toBeNull();
    },
  );

  test.each([
    ["ours is late", 0n, 40n],
    ["the chain's is", 40n, 0n],
  ])("after the claim where clocks differ: %s", async (_, clockIsBehind, chainIsBehind) => {
    found = submittedIn(51n);
    clock.advance(10 * seconds);
    const claimed = BigInt(clock.now() / 1000 - 10) + clockIsBehind - chainIsBehind;
    blockTime = claimed + 2n;
    head.timestamp = claimed + 10n;
    expect(await recovery.consider(id)).toEqual({ outcome: "queued" });
  });

  test.each([5_000n, 20_000n])(
    "after the claim, though an endpoint said then that the chain was at block %i already",
    async (balanceBlock) => {
      const late = paymentOf("late", { balanceBlock });
      const { attempt } = await ledger.claimAll([late]);
      await ledger.mine(attempt?.txNonce ?? -1, [failed(late)]);
      found = submittedIn(4_000n);
      clock.advance(hours);
      blockTime = BigInt(clock.now() / 1000 - 60);
      head.timestamp = blockTime + 60n;
      expect(await recovery.consider(late.id)).toEqual({ outcome: "queued" });
      // From an hour before the claim, by what blocks take.
      expect(searches).toEqual([{ fromBlock: 10_000n - 2n * 1_800n, toBlock: 9_998n }]);
    },
  );

  test("after the claim, it is queued, and stays so when its time is over", async () => {
    found = submittedIn(51n);
    head.timestamp = validBefore + 1_000_000n;
    expect(await recovery.consider(id)).toEqual({ outcome: "queued" });
    expect((await ledger.findFailure(id))?.recovery).toMatchObject({
      state: "queued",
      proof: { transactionHash: hashOf("direct submission"), logIndex: 4, blockNumber: 51n },
    });
    expect(await nextLook()).not.toBeNull();
  });

  test("and its block is replaced by one without it: it is not queued any more", async () => {
    found = submittedIn(51n);
    await recovery.consider(id);
    used = false;
    found = null;
    expect(await recovery.consider(id)).toEqual({ outcome: "failed" });
    expect((await ledger.findFailure(id))?.recovery).toBeNull();
    expect(await nextLook()).not.toBeNull();
  });

  test("and the chain cannot be asked how: that is no verdict, and nothing is forgotten", async () => {
    found = submittedIn(51n);
    await recovery.consider(id);
    found = new UndeterminedError("no usable answer");
    await expect(recovery.consider(id)).rejects.toThrow("no usable answer");
    expect((await ledger.findFailure(id))?.recovery).toMatchObject({ state: "queued" });
  });
});

test("logs are searched from an hour before the claim; once a submission is known, from an hour before it", async () => {
  const late = paymentOf("late", { balanceBlock: 8_000n });
  const { attempt } = await ledger.claimAll([late]);
  await ledger.mine(attempt?.txNonce ?? -1, [failed(late)]);
  used = true;
  found = submittedIn(9_500n);
  await recovery.consider(late.id);
  await recovery.consider(late.id);
  expect(searches).toEqual([
    { fromBlock: 6_200n, toBlock: 9_998n },
    { fromBlock: 7_700n, toBlock: 9_998n },
  ]);
});

test("what is no failure of this chain any more is to be read again", async () => {
  expect(await recovery.consider(paymentOf("unknown").id)).toEqual({ outcome: "recovered" });
});
