import { encodeFunctionData, erc20Abi } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { permit2Address } from "../../../src/methods/permit2/permit.ts";
import { type LocalTokenName, localTokens } from "../../../src/payer/local-chains.ts";
import { type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { type Address, addressWord, type Hex } from "../../../src/protocol/hex.ts";
import { membersOf } from "../../../src/util/json.ts";
import { takingOf, value } from "../../support/recovery-scene.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Tokens besides USDC, paid with by Permit2: what has no permit, what returns nothing, what has EIP-2612 alone; and one that
 * keeps a fee, which cannot be paid with.
 */

const scene = useRecoveryScene();
const node = () => createLocalRpc(scene.chain.rpcUrl);
const assetOf = (name: LocalTokenName) => localTokens[name];

/** Has a transaction mined. */
async function send(from: Address, data: Hex, to: Address): Promise<void> {
  const { request } = node();
  await request("anvil_impersonateAccount", from);
  const hash = await request("eth_sendTransaction", { from, data, gas: "0x4c4b40", to });
  await request("evm_mine");
  const { status } = membersOf(await request("eth_getTransactionReceipt", hash));
  if (status !== "0x1") throw new Error("the call did not succeed");
}
async function read(name: LocalTokenName, data: Hex): Promise<bigint> {
  return BigInt(String(await node().request("eth_call", { to: assetOf(name).address, data }, "latest")));
}
const balanceOf = (name: LocalTokenName, account: Address) => read(name, `0x70a08231${addressWord(account)}`);
const received = (name: LocalTokenName) => balanceOf(name, scene.recipient());

async function approve(name: LocalTokenName, payer: TestPayerName, amount: bigint): Promise<void> {
  const args = [permit2Address, amount] as const;
  await send(
    testPayers[payer].address,
    encodeFunctionData({ abi: erc20Abi, functionName: "approve", args }),
    assetOf(name).address,
  );
}

beforeAll(async () => {
  // The sender of an approval pays for it.
  await scene.chain.setBalance(testPayers.sponsored.address, 10n ** 18n);
});

const start = (changes = {}) =>
  scene.startService({ network: { assets: [scene.chain.asset, ...Object.values(localTokens)], ...changes } });
const success = { body: { success: true } };
type Running = Awaited<ReturnType<typeof start>>;
const verify = (running: Running, body: Parameters<typeof scene.post>[2]) =>
  scene.post(running, "verify", body);
const settle = (running: Running, body: Parameters<typeof scene.post>[2]) =>
  scene.post(running, "settle", body);

describe.each(["plain", "usdt", "permit"] as const)("a token that is %s", (name) => {
  test.each([
    ["exact, through the contract", {}, "contract"],
    ["exact, straight", {}, "any"],
    ["upto, through the contract", { max: 3n * value }, "contract"],
    ["upto, straight", { max: 3n * value }, "any"],
  ] as const)("is paid with: %s", async (_, terms, payTo) => {
    const running = await start({ payTo });
    const to = payTo === "any" ? { payTo: scene.recipient() } : {};
    const body = await scene.signPermit("funded", { asset: assetOf(name), ...terms, ...to });
    const asked = "max" in terms ? takingOf(body, terms.max) : body;
    expect((await verify(running, asked)).body).toMatchObject({ isValid: true });
    expect(await settle(running, body)).toMatchObject(success);
    expect(await received(name)).toBe(value);
    expect(await balanceOf(name, scene.chain.facilitatorContract)).toBe(0n);
  });

  test("of which the payer has too little, or has approved nothing, is refused by that reason", async () => {
    const running = await start();
    const rich = await scene.signPermit("funded", { asset: assetOf(name), amount: 10n ** 13n });
    expect((await settle(running, rich)).body).toMatchObject({ errorReason: "permit2_insufficient_balance" });
    const unapproved = await scene.signPermit("unapproved", { asset: assetOf(name) });
    expect((await settle(running, unapproved)).body).toMatchObject({
      errorReason: "permit2_allowance_required",
    });
    expect(await received(name)).toBe(0n);
  });

  test("is approved by a transaction that comes with the payment", async () => {
    const running = await start();
    const body = await scene.signPermit("sponsored", { asset: assetOf(name), approvalTransaction: {} });
    expect((await verify(running, body)).body).toMatchObject({ isValid: true });
    expect(await settle(running, body)).toMatchObject(success);
    expect(await received(name)).toBe(value);
  });

  test("is not paid with by EIP-3009, which it does not have", async () => {
    const running = await start();
    const body = await scene.signPermit("funded", { asset: assetOf(name) });
    const { paymentPayload } = await scene.sign("funded");
    const other = { ...body, paymentPayload: { ...body.paymentPayload, payload: paymentPayload.payload } };
    expect((await settle(running, other)).body).toMatchObject({ success: false });
    expect(await received(name)).toBe(0n);
  });
});

test("a token whose approval must be taken back before another refuses one that comes along, and nothing is sent", async () => {
  const running = await start();
  const { address } = testPayers.sponsored;
  await approve("usdt", "sponsored", 1n);
  const sent = () => node().request("eth_getTransactionCount", address, "latest");
  const before = await sent();
  const body = await scene.signPermit("sponsored", { asset: assetOf("usdt"), approvalTransaction: {} });
  const refused = { situation: "approval_transaction_fails" };
  expect((await verify(running, body)).body).toMatchObject({ isValid: false, ...refused });
  expect((await settle(running, body)).body).toMatchObject({ success: false, ...refused });
  expect(await sent()).toBe(before);
  await approve("usdt", "sponsored", 0n);
  const again = await scene.signPermit("sponsored", { asset: assetOf("usdt"), approvalTransaction: {} });
  expect(await settle(running, again)).toMatchObject(success);
});

test("a token with EIP-2612 is approved by a permit in the payment's own transaction, under its own domain alone", async () => {
  const running = await start();
  const asset = assetOf("permit");
  const { address } = testPayers.unapproved;
  const otherDomain = { ...asset, version: "2" };
  const wrong = await scene.signPermit("unapproved", { asset: otherDomain, approval: {} });
  expect((await settle(running, wrong)).body).toMatchObject({
    ...{ success: false, errorReason: "permit2_allowance_required", situation: "approval_refused" },
    errorMessage: expect.stringContaining("under the token's own domain"),
  });
  const count = await node().request("eth_getTransactionCount", address, "latest");
  const body = await scene.signPermit("unapproved", { asset, approval: {} });
  expect((await verify(running, body)).body).toMatchObject({ isValid: true });
  expect(await settle(running, body)).toMatchObject(success);
  expect(await received("permit")).toBe(value);
  expect(await node().request("eth_getTransactionCount", address, "latest")).toBe(count);
});

test.each(["contract", "any"] as const)(
  "a token that keeps a fee is refused, with PAY_TO=%s",
  async (payTo) => {
    const running = await start({ payTo });
    const to = payTo === "any" ? { payTo: scene.recipient() } : {};
    const before = await balanceOf("fee", testPayers.funded.address);
    const body = await scene.signPermit("funded", { asset: assetOf("fee"), ...to });
    expect((await verify(running, body)).body).toMatchObject({
      isValid: false,
      invalidMessage: expect.stringContaining("it keeps a fee of each transfer"),
    });
    expect((await settle(running, body)).body).toMatchObject({ success: false });
    expect([await received("fee"), await balanceOf("fee", testPayers.funded.address)]).toEqual([0n, before]);
  },
);
