import {
  declareEip2612GasSponsoringExtension,
  declareErc20ApprovalGasSponsoringExtension,
} from "@x402/extensions";
import { encodeFunctionData } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { mockUsdcAbi } from "../../../src/contracts/mockUsdc.ts";
import { signApprovalTransaction } from "../../../src/methods/permit2/sign-approval-transaction.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import {
  channelRequirements,
  connectFacilitator,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
  startChannelShop,
} from "../../support/channels.ts";
import type { Running } from "../../support/composition.ts";
import { goods } from "../../support/merchant.ts";
import type { Body } from "../../support/service.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/* Deposits by Permit2 of buyers who have not approved it: the approval comes with the deposit, as the public client signs it. */

const scene = useRecoveryScene();

const kinds = ["eip2612GasSponsoring", "erc20ApprovalGasSponsoring"] as const;
type Kind = (typeof kinds)[number];
const declared: Readonly<Record<Kind, Body>> = {
  eip2612GasSponsoring: declareEip2612GasSponsoringExtension(),
  erc20ApprovalGasSponsoring: declareErc20ApprovalGasSponsoringExtension(),
};

const start = (network: Partial<NetworkConfig> = {}) =>
  scene.startService({ network: { payTo: "any", ...network } });
const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;
const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;
const node = () => createLocalRpc(scene.chain.rpcUrl);
const transactionsOf = async (account: Hex) =>
  Number(await node().request("eth_getTransactionCount", account, "latest"));
const gifts = () => transactionsOf(harnessAccounts.sponsor.address);

/** A deposit of 10,000 by a new buyer with 50,000, who has neither gas money nor approved anything. */
async function signDeposit(kind: Kind, receiver: Hex = newAccount()) {
  const terms = { receiver, receiverAuthorizer: newAccount(), method: "permit2" } as const;
  const buyer = await createChannelBuyer(scene.chain);
  const requirements = channelRequirements(scene.chain, terms);
  const body = structuredClone(await signChannelPayment(buyer, requirements, declared[kind]));
  const { payload, extensions } = body.paymentPayload;
  const { channelId } = payload.voucher;
  return { body, buyer, payer: buyer.account.address, channelId, info: extensions[kind].info };
}

/** Answers of verify and settle. */
async function ask(running: Running, body: Body) {
  const { body: verified } = await scene.post(running, "verify", body);
  const { body: settled } = await scene.post(running, "settle", body);
  return { verified, settled } as { verified: Body; settled: Body };
}

/** Expects a deposit to be refused by both operations, and that nothing is sent for it. */
async function expectRefused(running: Running, body: Body, refusal: { reason: string; situation?: string }) {
  const { channelConfig, voucher } = body.paymentPayload.payload;
  const accounts = [channelConfig.payer, harnessAccounts.sponsor.address, harnessAccounts.operator.address];
  const sent = () => Promise.all(accounts.map(transactionsOf));
  const before = await sent();
  const { verified, settled } = await ask(running, body);
  const { reason: name, ...rest } = refusal;
  expect(verified).toMatchObject({ isValid: false, invalidReason: name, ...rest });
  expect(settled).toMatchObject({ success: false, errorReason: name, ...rest });
  expect(await sent()).toEqual(before);
  expect(await readChannelState(scene.chain, voucher.channelId)).toEqual([0n, 0n]);
}

describe.each(kinds)("%s", (kind) => {
  const isTransaction = kind === "erc20ApprovalGasSponsoring";

  test("a buyer without gas money opens a channel, and buys on it", async () => {
    const running = await start();
    const { facilitator, exchanges } = connectFacilitator(running.url, running.key);
    const terms = { method: "permit2", ownKey: true, extensions: declared[kind] } as const;
    const shop = await startChannelShop(scene.chain, facilitator, terms);
    onTestFinished(() => shop.close());
    const buyer = await createChannelBuyer(scene.chain);
    const { address } = buyer.account;
    const given = await gifts();
    for (let purchase = 1; purchase <= 3; purchase++) {
      expect(await buyer.buy(shop.url)).toMatchObject({ status: 200, body: goods });
    }
    expect(exchanges.map(({ operation }) => operation)).toEqual(["verify", "settle"]);
    const [verified, settled] = exchanges;
    expect(verified?.answer).toMatchObject({ isValid: true, extra: { balance: "0" } });
    expect(settled?.answer).toMatchObject({ success: true, amount: "10000" });
    const { channelId } = Object(verified?.answer).extra;
    expect(await readChannelState(scene.chain, channelId)).toEqual([10_000n, 0n]);
    expect(await scene.balanceOf(address)).toBe(40_000n);
    expect([await transactionsOf(address), (await gifts()) - given]).toEqual(isTransaction ? [1, 1] : [0, 0]);
    const { settled: repeat } = await ask(running, Object(settled?.body));
    expect(repeat).toMatchObject({ success: false, situation: "settled_before", paymentState: "taken" });
    expect(await transactionsOf(address)).toBe(isTransaction ? 1 : 0);
  });

  test("where the facilitator does not offer it, the buyer is told to approve", async () => {
    const running = await start({ gasSponsoring: [] });
    const { body } = await signDeposit(kind);
    const name = isTransaction ? "erc20_approval_unavailable" : "permit2_allowance_required";
    await expectRefused(running, body, { reason: reason(name), situation: "allowance_too_small" });
  });

  test("an approval that is not needed is left out", async () => {
    const running = await start();
    const { body, payer } = await signDeposit(kind);
    await scene.chain.approvePermit2(payer, 20_000n);
    const before = await transactionsOf(payer);
    const { verified, settled } = await ask(running, body);
    expect([verified, settled]).toMatchObject([{ isValid: true }, { success: true }]);
    expect(await transactionsOf(payer)).toBe(before);
    // The approval would have left nothing of what there was.
    const allowance = {
      functionName: "allowance",
      args: [payer, "0x000000000022D473030F116dDEE9F6B43aC78BA3"],
    };
    const data = encodeFunctionData({ abi: mockUsdcAbi, ...allowance } as never);
    const left = await node().request("eth_call", { to: scene.chain.asset.address, data }, "latest");
    expect(BigInt(String(left))).toBe(10_000n);
  });

  test("sent again without it, a deposit is the same one", async () => {
    const running = await start();
    const { body, channelId } = await signDeposit(kind);
    const without = structuredClone(body);
    delete without.paymentPayload.extensions;
    expect((await scene.post(running, "settle", body)).body).toMatchObject({ success: true });
    const { settled } = await ask(running, without);
    expect(settled).toMatchObject({ success: false, situation: "settled_before" });
    expect(await readChannelState(scene.chain, channelId)).toEqual([10_000n, 0n]);
  });
});

describe("an approval by EIP-2612", () => {
  const other = newAccount();
  test.each<[name: string, changes: object]>([
    [reason("eip2612_owner_mismatch"), { from: other }],
    [reason("eip2612_asset_mismatch"), { asset: other }],
    [reason("eip2612_spender_mismatch"), { spender: other }],
    [reason("eip2612_amount_mismatch"), { amount: "9999" }],
    [reason("eip2612_amount_mismatch"), { amount: "1000" }],
    [reason("eip2612_deadline_expired"), { deadline: "1000" }],
    [reason("permit2_allowance_required"), { signature: `0x${"11".repeat(64)}1b` }],
    ["invalid_eip2612_extension_format", { version: "x" }],
  ])("is refused as %s: %o", async (name, changes) => {
    const { body, info } = await signDeposit("eip2612GasSponsoring");
    Object.assign(info, changes);
    await expectRefused(await start(), body, { reason: name });
  });

  test("that somebody submits first does no harm", async () => {
    const running = await start();
    const { body, channelId, info } = await signDeposit("eip2612GasSponsoring");
    const { from, spender, amount, deadline, signature } = info;
    const args = [from, spender, BigInt(amount), BigInt(deadline), signature];
    const data = encodeFunctionData({ abi: mockUsdcAbi, functionName: "permit", args } as never);
    await scene.mine({ from: scene.stranger(), to: scene.chain.asset.address, data });
    const { verified, settled } = await ask(running, body);
    expect([verified, settled]).toMatchObject([{ isValid: true }, { success: true }]);
    expect(await readChannelState(scene.chain, channelId)).toEqual([10_000n, 0n]);
  });
});

describe("an approval that is a transaction of the buyer's", () => {
  const kind = "erc20ApprovalGasSponsoring";

  test("is not sent for an organization whose gas budget is used up", async () => {
    const running = await start();
    await running.service.organizations.setLimits("org", "base", { dailyGasBudget: 1n });
    const { body, payer, channelId } = await signDeposit(kind);
    await scene.chain.setBalance(payer, 10n ** 18n);
    expect(await scene.post(running, "settle", body)).toMatchObject({ status: 429 });
    expect(await transactionsOf(payer)).toBe(0);
    expect(await readChannelState(scene.chain, channelId)).toEqual([0n, 0n]);
  });

  test.each<[name: string, terms: object]>([
    ["erc20_approval_tx_invalid_calldata", { amount: 9_999n }],
    ["erc20_approval_tx_wrong_spender", { spender: newAccount() }],
    ["erc20_approval_broadcast_failed", { nonce: 3 }],
    ["erc20_approval_broadcast_failed", { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }],
    ["erc20_approval_broadcast_failed", { gas: 30_000n }],
  ])("is refused as %s: %o", async (name, terms) => {
    const running = await start();
    const key = generatePrivateKey();
    const buyer = await createChannelBuyer(scene.chain, "eip3009", key);
    await scene.chain.setBalance(buyer.account.address, 10n ** 18n);
    const requirements = channelRequirements(scene.chain, {
      ...{ receiver: newAccount(), receiverAuthorizer: newAccount(), method: "permit2" },
    });
    const body = structuredClone(await signChannelPayment(buyer, requirements, declared[kind]));
    const { asset, network } = scene.chain;
    const fees = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n, nonce: 0 };
    const info = await signApprovalTransaction(createPayerSigner(key), {
      ...{ asset: asset.address, chainId: network.chainId, ...fees },
      ...terms,
    });
    // What it says of itself is right.
    Object.assign(body.paymentPayload.extensions[kind].info, info, {
      spender: "0x000000000022D473030F116dDEE9F6B43aC78BA3",
    });
    await expectRefused(running, body, { reason: name });
  });

  test.each([
    ["without a budget for gifts", { gifts: undefined }],
    ["with too small a budget for gifts", { gifts: { each: 10n ** 16n, daily: 10n } }],
  ])("%s, the buyer is told to approve", async (_, network) => {
    const { body } = await signDeposit(kind);
    const refusal = { reason: reason("permit2_allowance_required"), situation: "approval_gas_missing" };
    await expectRefused(await start(network), body, refusal);
  });

  test("is sent before a deposit that then fails: the answer says so, and it is not sent again", async () => {
    const running = await start();
    const { body, payer, channelId } = await signDeposit(kind);
    const { asset, node: chainNode } = scene.chain;
    await scene.chain.setBalance(payer, 10n ** 18n);
    const release = await scene.holdMining();
    const answer = scene.post(running, "settle", body);
    await scene.untilInPool(1);
    await chainNode.request("anvil_impersonateAccount", payer);
    const away = encodeFunctionData({
      ...{ abi: mockUsdcAbi, functionName: "transfer", args: [scene.stranger(), 45_000n] },
    });
    await chainNode.request("eth_sendTransaction", {
      from: payer,
      to: asset.address,
      data: away,
      nonce: "0x1",
    });
    await release();
    expect((await answer).body).toMatchObject({
      ...{ success: false, errorReason: reason("insufficient_balance"), transaction: "" },
    });
    expect(await transactionsOf(payer)).toBe(2);
    expect(await readChannelState(scene.chain, channelId)).toEqual([0n, 0n]);
    await scene.chain.fund(payer, 45_000n);
    const { settled } = await ask(running, body);
    expect(settled).toMatchObject({ success: true, amount: "10000" });
    expect(await transactionsOf(payer)).toBe(2);
  });

  test("that is not mined in time leaves the deposit unsent, and the same deposit settles later", async () => {
    const running = await scene.startService({ network: { payTo: "any" }, settleWaitMs: 800 });
    const { body, payer, channelId } = await signDeposit(kind);
    await scene.chain.setBalance(payer, 10n ** 18n);
    const release = await scene.holdMining();
    expect((await scene.post(running, "settle", body)).status).toBe(503);
    await release();
    let settled = await scene.post(running, "settle", body);
    while (settled.status !== 200) settled = await scene.post(running, "settle", body);
    expect(settled.body).toMatchObject({ success: true });
    expect(await transactionsOf(payer)).toBe(1);
    expect(await readChannelState(scene.chain, channelId)).toEqual([10_000n, 0n]);
  });

  test.each(["gift sent", "before the claim", "claimed, not broadcast"] as const)(
    "killed when %s, it is given once, approves once and deposits once",
    { timeout: 60_000 },
    async (dieAt) => {
      const given = await gifts();
      const { body, payer, channelId } = await signDeposit(kind, harnessAccounts.recipient.address);
      const { answer } = await settleAfterDeath(scene, body, { dieAt });
      expect(answer).toMatchObject({ success: true, amount: "10000" });
      expect(await gifts()).toBe(given + 1);
      expect(await transactionsOf(payer)).toBe(1);
      expect(await readChannelState(scene.chain, channelId)).toEqual([10_000n, 0n]);
      expect(await scene.balanceOf(payer)).toBe(40_000n);
    },
  );
});
