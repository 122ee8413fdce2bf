import { beforeEach, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { createLedger } from "../../../src/ledger/create-ledger.ts";
import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import type { Gift } from "../../../src/ledger/gifts.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { uintWord } from "../../../src/protocol/hex.ts";
import type { Running } from "../../support/composition.ts";
import { giftBoundaries } from "../../support/crash/boundaries.ts";
import type { Body } from "../../support/service.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Who pays for the gas money that payers are given for their approvals: the organization whose payment it is, by its gas budget,
 * and none for another one.
 */

const scene = useRecoveryScene();

const gwei = 10n ** 9n;
/** The gas money that an approval here lacks: its gas limit times what it offers, of a payer who has nothing. The tip that anvil suggests. */
const approvalGas = 60_000n;
const offered = gwei;
const lacked = approvalGas * offered;
const poor = ["unapproved", "sponsored"] as const;
type Poor = (typeof poor)[number];

const node = () => createLocalRpc(scene.chain.rpcUrl);
const given = async () =>
  Number(await node().request("eth_getTransactionCount", harnessAccounts.sponsor.address, "latest"));
const coinsOf = async (payer: TestPayerName) =>
  BigInt(String(await node().request("eth_getBalance", testPayers[payer].address, "latest")));
const sign = (payer: Poor, maxFeePerGas = offered) =>
  scene.signPermit(payer, {
    approvalTransaction: { gas: approvalGas, maxFeePerGas, amount: 2n ** 256n - 1n },
  });
const settle = (running: Running, body: Body) => scene.post(running, "settle", body);
const success = { status: 200, body: { success: true } };
const overBudget = {
  status: 429,
  body: {
    type: "urn:x402-facilitator-kit:problem:gas-budget-used-up",
    detail: expect.stringContaining("that payers with code and gas money for approvals may use is used up"),
    success: false,
  },
};
const notGiven = { status: 200, body: { success: false, situation: "approval_gas_missing" } };

/** A payer's gift and an organization's spending of today in the ledger, in wei. */
async function readLedger(
  payer: Poor,
  organizationId = "org",
): Promise<{ gift: Gift | null; spent: bigint; ofStrangers: bigint }> {
  const db = await openDatabase({ url: scene.databaseUrl() });
  try {
    const { gifts, outcomes } = createLedger({ db, instanceId: crypto.randomUUID(), now: Date.now });
    const { network, asset } = scene.chain;
    const receiver = { chainId: network.chainId, asset: asset.address, payer: testPayers[payer].address };
    const { spent } = await outcomes.gasSpending(organizationId, "base");
    const gift = await gifts.find(receiver);
    return { gift, spent: spent.withCode + spent.plain, ofStrangers: spent.withCode };
  } finally {
    await db.destroy();
  }
}
const costOf = (gift: Gift | null) => (gift === null ? 0n : gift.value + 21_000n * gift.maxFeePerGas);

const setBudget = ({ service }: Running, dailyGasBudget: bigint | null) =>
  service.organizations.setLimits("org", "base", { dailyGasBudget });

beforeEach(async () => {
  for (const payer of poor) {
    await scene.chain.setBalance(testPayers[payer].address, 0n);
    await scene.chain.approvePermit2(testPayers[payer].address, 0n);
    await scene.chain.setBalance(testPayers[payer].address, 0n);
  }
  await node().request("anvil_setNextBlockBaseFeePerGas", "0x1");
  await node().request("evm_mine");
});

test("what a payer is given counts in the gas budget of the organization that is paid, and of no other", async () => {
  const running = await scene.startService();
  expect(await settle(running, await sign("unapproved"))).toMatchObject(success);
  const { gift, spent, ofStrangers } = await readLedger("unapproved");
  expect(gift).toMatchObject({ value: lacked, organizationId: "org" });
  expect(ofStrangers).toBe((costOf(gift) / gwei + 1n) * gwei);
  expect(spent).toBeGreaterThan(ofStrangers);
  expect((await readLedger("unapproved", "rival")).spent).toBe(0n);
  // The next payment of the same payer costs its own gas alone.
  expect(await settle(running, await sign("unapproved"))).toMatchObject(success);
  expect((await readLedger("unapproved")).ofStrangers).toBe(ofStrangers);
});

test("a gift that the budget does not cover is not made, and the payment can settle once it does", async () => {
  const running = await scene.startService();
  await setBudget(running, 4n * lacked);
  const [before, body] = [await given(), await sign("unapproved")];
  expect((await scene.post(running, "verify", body)).body).toMatchObject({ isValid: true });
  const refused = await settle(running, body);
  expect(refused).toMatchObject(overBudget);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect([await given(), await readLedger("unapproved")]).toEqual([
    before,
    { gift: null, spent: 0n, ofStrangers: 0n },
  ]);
  await setBudget(running, 16n * lacked);
  expect(await settle(running, body)).toMatchObject(success);
  expect(await given()).toBe(before + 1);
});

test("the approval of a payer with gas money is not sent for an organization whose budget is used up", async () => {
  const running = await scene.startService();
  await setBudget(running, 1n);
  const { address } = testPayers.unapproved;
  await scene.chain.setBalance(address, lacked);
  const sent = () => node().request("eth_getTransactionCount", address, "latest");
  const [before, body] = [await sent(), await sign("unapproved")];
  expect(await settle(running, body)).toMatchObject({
    status: 429,
    body: { type: "urn:x402-facilitator-kit:problem:gas-budget-used-up" },
  });
  expect(await sent()).toBe(before);
  await setBudget(running, null);
  expect(await settle(running, body)).toMatchObject(success);
});

test("two payers at once cannot be given more than the budget covers", async () => {
  const running = await scene.startService();
  await setBudget(running, 8n * lacked);
  const before = await given();
  const bodies = [await sign("unapproved"), await sign("sponsored")];
  const answers = await Promise.all(bodies.map((body) => settle(running, body)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 429]);
  expect(await given()).toBe(before + 1);
  // Who has gas money is not concerned.
  expect(await settle(running, await scene.signPermit("funded"))).toMatchObject(success);
  await setBudget(running, null);
  for (const [index, body] of bodies.entries()) {
    if (answers[index]?.status === 429) expect(await settle(running, body)).toMatchObject(success);
  }
});

test("one organization's payers cannot use up what those of another are given", async () => {
  const network: Partial<NetworkConfig> = { gifts: { each: lacked, daily: 3n * lacked } };
  const running = await scene.startService({ network });
  const before = await given();
  expect(await settle(running, await sign("unapproved"))).toMatchObject(success);
  const body = await sign("sponsored");
  expect((await scene.post(running, "verify", body)).body).toMatchObject({
    isValid: false,
    situation: "approval_gas_missing",
  });
  expect(await settle(running, body)).toMatchObject(notGiven);
  expect(await given()).toBe(before + 1);
  expect(await settle({ ...running, key: running.rivalKey }, body)).toMatchObject(success);
  expect((await readLedger("sponsored", "rival")).gift).toMatchObject({ organizationId: "rival" });
});

test.each(giftBoundaries)("a process that dies has its organization charged once: %s", async (dieAt) => {
  const { answer } = await settleAfterDeath(scene, await sign("unapproved"), { dieAt });
  expect(answer).toMatchObject({ success: true });
  const { gift, ofStrangers } = await readLedger("unapproved");
  // What it was replaced with, if it had to be, is charged as well, and rounded up again.
  const least = (costOf(gift) / gwei + 1n) * gwei;
  expect(gift?.value).toBe(lacked);
  expect(ofStrangers).toBeGreaterThanOrEqual(least);
  expect(ofStrangers - least).toBeLessThanOrEqual(3n * gwei);
});

test("offers beyond all measure are refused, and give nothing", async () => {
  const running = await scene.startService();
  const before = await given();
  for (const fee of [10n ** 12n, 2n ** 128n, 2n ** 256n - 1n]) {
    const answer = await settle(running, await sign("unapproved", fee));
    expect(answer).toMatchObject({ status: 200, body: { success: false } });
  }
  expect(await given()).toBe(before);
  expect((await readLedger("unapproved")).ofStrangers).toBe(0n);
});

describe("on a rollup that charges for data", () => {
  const dataFee = 3n * 10n ** 14n;
  /** Says of every transaction that its data costs so much. */
  const setOracle = (code: string) =>
    node().request("anvil_setCode", "0x420000000000000000000000000000000000000F", code);
  beforeEach(async () => {
    await setOracle(`0x7f${uintWord(dataFee)}5f5260205ff3`);
    return () => setOracle("0x");
  });

  test("a payer is given that too, and half of it more, as the fee may rise until the approval is sent", async () => {
    const running = await scene.startService();
    expect(await settle(running, await sign("unapproved"))).toMatchObject(success);
    const { gift, ofStrangers } = await readLedger("unapproved");
    expect(gift?.value).toBe(lacked + dataFee + dataFee / 2n);
    // The local chain has charged none.
    expect(await coinsOf("unapproved")).toBeGreaterThan(dataFee + dataFee / 2n);
    expect(ofStrangers).toBe(((costOf(gift) + dataFee) / gwei + 1n) * gwei);
  });

  test("one who has gas money for all but the data is given that", async () => {
    await scene.chain.setBalance(testPayers.unapproved.address, lacked + dataFee - 1n);
    const running = await scene.startService();
    expect(await settle(running, await sign("unapproved"))).toMatchObject(success);
    expect((await readLedger("unapproved")).gift?.value).toBe(1n + dataFee / 2n);
  });

  test("a sponsor who could not pay for the data of a gift gives none", async () => {
    const running = await scene.startService({ network: { maxFeePerGas: 200n * gwei } });
    const { address } = harnessAccounts.sponsor;
    const balance = String(await node().request("eth_getBalance", address, "latest"));
    // Enough for the gift and for any gas of it, where data costs nothing.
    await scene.chain.setBalance(address, lacked + (dataFee * 3n) / 2n + dataFee / 2n);
    const before = await given();
    expect(await settle(running, await sign("unapproved"))).toMatchObject(notGiven);
    expect(await given()).toBe(before);
    await scene.chain.setBalance(address, BigInt(balance));
  });
});
