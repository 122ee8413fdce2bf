import { setTimeout as sleep } from "node:timers/promises";
import { parseEther } from "viem";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { channels } from "../../../src/observe/channels/channels.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";

/* What a test may do to a harness, and the next one must not notice. */

const stranger = "0x00000000000000000000000000000000000000c1";
const wallClock = () => Math.floor(Date.now() / 1_000);

let harness: Harness<"base" | "polygon">;
let base: (typeof harness)["networks"]["base"];
beforeAll(async () => {
  harness = await createHarness({ networks: ["base", "polygon"] });
  base = harness.networks.base;
});
afterAll(() => harness?.close());
beforeEach(() => harness.reset());

/** The chain's mode of mining, its pool, and its newest block but for what differs anyway. */
async function look() {
  const { client } = base;
  const { number, baseFeePerGas, gasLimit, miner } = await client.getBlock();
  const pool = await client.getTxpoolStatus();
  const automine = await client.getAutomine();
  const funds = await base.balanceOf(testPayers.funded.address);
  return { number, baseFeePerGas, gasLimit, miner, pool, automine, funds };
}

test("what was paid, minted and mined is gone, and the same payment can be made again", async () => {
  const before = await look();
  const request = await harness.sign({ network: "base", amount: 5n });
  expect((await harness.settle(request)).body.success).toBe(true);
  expect((await harness.settle(request)).body.errorReason).toBe("invalid_transaction_state");
  await base.fund(stranger, 7n);
  await base.client.setCode({ address: stranger, bytecode: "0x00" });
  await base.client.setBalance({ address: stranger, value: parseEther("1") });
  // More blocks than states are kept in memory.
  await base.mine(100);

  await harness.reset();
  const after = await look();
  expect(after.funds).toBe(before.funds);
  // One block a second comes by itself.
  expect(after.number - before.number).toBeLessThan(3n);
  expect(await base.client.getCode({ address: stranger })).toBeUndefined();
  expect(await base.client.getBalance({ address: stranger })).toBe(0n);
  expect(await base.balanceOf(stranger)).toBe(0n);
  expect((await harness.settle(request)).body.success).toBe(true);
});

test("what others read from the chain meanwhile changes nothing of a reset", async () => {
  const before = await look();
  let isOver = false;
  const reading = (async () => {
    // A node that is asked while it goes back may say that the block is no more.
    for (; !isOver; await sleep(1)) await base.balanceOf(stranger).catch(() => {});
  })();
  for (let round = 0; round < 4; round++) {
    await harness.pay({ network: "base" });
    await harness.reset();
    const { number, funds } = await look();
    expect(number - before.number).toBeLessThan(3n);
    expect(funds).toBe(before.funds);
  }
  isOver = true;
  await reading;
});

test("the pool, the mode of mining, fees, the miner and the gas limit are as before", async () => {
  const before = await look();
  const { client } = base;
  await client.setAutomine(false);
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseEther("0.001") });
  await client.setCoinbase({ address: stranger });
  await client.setBlockGasLimit({ gasLimit: 1_000_000n });
  await client.impersonateAccount({ address: stranger });
  await client.setBalance({ address: stranger, value: parseEther("100") });
  await client.mine({ blocks: 2 });
  await client.sendTransaction({ account: stranger, to: stranger });
  await client.setIntervalMining({ interval: 1_000 });
  expect(await client.getTxpoolStatus()).toMatchObject({ pending: 1 });

  await harness.reset();
  const after = await look();
  // Each block without transactions costs an eighth less than the one before, and each reset begins a wei higher.
  expect({ ...after, number: 0n, baseFeePerGas: 0n }).toEqual({ ...before, number: 0n, baseFeePerGas: 0n });
  expect(after.baseFeePerGas).toBeLessThanOrEqual(10_000_020n);
  await expect(client.sendTransaction({ account: stranger, to: stranger })).rejects.toThrow(
    "No Signer available",
  );
  expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
});

test("time is the clock's again, and goes on", async () => {
  const { client } = base;
  await base.advanceTime(1_000_000);
  await client.setBlockTimestampInterval({ interval: 77 });
  await base.mine();
  await client.setNextBlockTimestamp({ timestamp: BigInt(wallClock() + 5_000_000) });

  await harness.reset();
  const isOfTheClock = () => expect.poll(async () => Math.abs(Number(await base.now()) - wallClock()));
  await isOfTheClock().toBeLessThanOrEqual(2);
  const before = await base.now();
  await expect.poll(() => base.now()).toBeGreaterThan(before + 1n);
  await isOfTheClock().toBeLessThanOrEqual(2);
});

test("snapshots of a test do not outlive it", async () => {
  const { client } = base;
  const id = await client.snapshot();
  await base.fund(stranger, 1n);
  await client.revert({ id });
  await client.snapshot();
  await base.fund(stranger, 2n);

  for (let round = 0; round < 3; round++) {
    await harness.reset();
    expect(await base.balanceOf(stranger)).toBe(0n);
    expect((await harness.pay({ network: "base", amount: 3n })).settle.body.success).toBe(true);
    expect(await base.balanceOf(harness.organization.recipient)).toBe(3n);
  }
});

test("a settle under way is answered at once that it was cut short, and nothing of it is mined later", async () => {
  const { client } = base;
  await client.setAutomine(false);
  const waiting = harness.pay({ network: "base" });
  while ((await client.getTxpoolStatus()).pending === 0) await sleep(5);

  await harness.reset();
  const { settle } = await waiting;
  expect(settle).toMatchObject({
    status: 503,
    body: { success: false, errorReason: "settlement_pending" },
  });
  await base.mine(2);
  expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
});

test("in the middle of many payments, several times at once", async () => {
  const payments = Array.from({ length: 20 }, (_, index) =>
    harness.pay({ network: index % 2 === 0 ? "base" : "polygon" }).catch((error: unknown) => error),
  );
  await sleep(20);
  await Promise.all([harness.reset(), harness.reset(), harness.reset()]);
  await Promise.all(payments);

  await harness.reset();
  for (const network of ["base", "polygon"] as const) {
    const { settle } = await harness.pay({ network, amount: 11n });
    expect(settle.body.success).toBe(true);
    expect(await harness.networks[network].balanceOf(harness.organization.recipient)).toBe(11n);
  }
});

test("the new service knows from the reset what its operator has sent, and asks no chain for it", async () => {
  await harness.pay({ network: "base" });
  let requests = 0;
  const unsubscribe = channels.rpc.subscribe(({ methods }) => {
    // The service before may still be asking for receipts.
    if (methods.includes("eth_getTransactionCount")) requests++;
  });
  await harness.reset();
  unsubscribe();
  expect(requests).toBe(0);
  expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
});
