import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import {
  channelRequirements,
  connectFacilitator,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
  startChannelShop,
} from "../../support/channels.ts";
import { goods } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, balanceOf, post, sendFrom, startTestHarness } from "../../support/service.ts";

/* Scheme “batch-settlement” by the unmodified public client and shop, with this facilitator: what buyers send. */

let harness: RunningHarness;
let chain: HarnessChain;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
});
afterAll(() => harness?.close());

const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;
const methods = ["eip3009", "permit2"] as const;
const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;

test("the scheme is offered for plain receivers alone", async () => {
  const { facilitator } = connectFacilitator(harness.description.facilitator.url);
  const { kinds } = await facilitator.getSupported();
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const offered = kinds.filter(({ scheme }) => scheme === "batch-settlement");
  expect(offered).toEqual([
    {
      x402Version: 2,
      scheme: "batch-settlement",
      network: "eip155:8453",
      extra: { payTo: "any", receiverAuthorizer },
    },
  ]);
});

describe.each(methods)("deposits by %s", (method) => {
  test("three purchases on one deposit", async () => {
    const { facilitator, exchanges } = connectFacilitator(harness.description.facilitator.url);
    const shop = await startChannelShop(chain, facilitator, { method, ownKey: true });
    onTestFinished(() => shop.close());
    const buyer = await createChannelBuyer(chain, method);
    const receipts = [];
    for (let purchase = 1; purchase <= 3; purchase++) {
      const { status, body, receipt } = await buyer.buy(shop.url);
      expect([status, body]).toEqual([200, goods]);
      receipts.push(receipt);
    }
    expect(receipts.map((receipt) => receipt?.amount)).toEqual(["10000", "", ""]);
    expect(exchanges.map(({ operation }) => operation)).toEqual(["verify", "settle"]);
    const [verified, settled] = exchanges.map(({ answer }) => answer as Body);
    const state = { totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: "0" };
    expect(verified).toMatchObject({ isValid: true, extra: { ...state, balance: "0" } });
    expect(settled).toMatchObject({
      ...{ success: true, amount: "10000", payer: buyer.account.address },
      extra: { channelState: { ...state, channelId: verified.extra.channelId, balance: "10000" } },
    });
    expect(await readChannelState(chain, verified.extra.channelId)).toEqual([10_000n, 0n]);
    expect(await balanceOf(harness, buyer.account.address)).toBe(40_000n);
    const [, sent] = exchanges;
    expect((await post(harness, "settle", sent?.body)).body).toMatchObject({
      ...{ success: false, situation: "settled_before", paymentState: "taken" },
    });
    expect(await balanceOf(harness, buyer.account.address)).toBe(40_000n);
  });

  test("a deposit that a stranger has submitted is a success, with the stranger's transaction", async () => {
    const buyer = await createChannelBuyer(chain, method);
    const terms = { receiver: newAccount(), receiverAuthorizer: newAccount(), method };
    const body = await signChannelPayment(buyer, channelRequirements(chain, terms));
    const { data } = await depositCall(body);
    await sendFrom(harness, newAccount(), batchSettlementAddress, data);
    const verified = await post(harness, "verify", body);
    expect(verified.body).toMatchObject({ isValid: true, extra: { balance: "10000" } });
    const settled = (await post(harness, "settle", body)).body;
    expect(settled).toMatchObject({
      ...{ success: true, amount: "10000" },
      extra: { channelState: { balance: "10000" } },
    });
    const transaction = await chain.node.request("eth_getTransactionByHash", settled.transaction);
    expect(transaction).toMatchObject({ to: batchSettlementAddress.toLowerCase(), input: data });
    expect((await post(harness, "settle", body)).body).toMatchObject({ situation: "settled_before" });
    expect(await balanceOf(harness, buyer.account.address)).toBe(40_000n);
  });
});

/** The call by which anybody can submit a deposit. */
async function depositCall(body: Body) {
  const { waysToPay } = await import("../../../src/methods/on-chain/ways-to-pay.ts");
  const parsed = waysToPay.parse(body);
  if (!parsed.ok) throw new Error(parsed.invalid.message);
  const { payment } = parsed.request;
  const network = { facilitatorContract: chain.facilitatorContract } as never;
  return waysToPay.settlingOf(payment.method).transaction([{ payment, recipient: payment.payTo }], network);
}

test("a voucher is verified by the state of its channel, and never settled", async () => {
  const buyer = await createChannelBuyer(chain);
  const requirements = channelRequirements(chain, {
    ...{ receiver: newAccount(), receiverAuthorizer: newAccount() },
  });
  const deposit = await signChannelPayment(buyer, requirements);
  const settled = (await post(harness, "settle", deposit)).body;
  const { channelConfig, voucher } = deposit.paymentPayload.payload;
  const asVoucher = (type: string, changes: object = {}) => ({
    ...deposit,
    paymentPayload: { ...deposit.paymentPayload, payload: { type, channelConfig, voucher, ...changes } },
  });
  for (const type of ["voucher", "refund"]) {
    expect((await post(harness, "verify", asVoucher(type))).body).toMatchObject({
      ...{ isValid: true, payer: buyer.account.address, extra: settled.extra.channelState },
    });
    expect((await post(harness, "settle", asVoucher(type))).body).toMatchObject({
      ...{ success: false, errorReason: reason("payload_type") },
    });
  }
  const forged = { voucher: { ...voucher, maxClaimableAmount: "2000" } };
  expect((await post(harness, "verify", asVoucher("voucher", forged))).body).toMatchObject({
    ...{ isValid: false, invalidReason: reason("voucher_signature") },
  });
  const dearer = { ...requirements, amount: "1001" };
  expect(
    (await post(harness, "verify", { ...asVoucher("voucher"), paymentRequirements: dearer })).body,
  ).toMatchObject({ isValid: false, invalidReason: reason("cumulative_below_claimed") });
});

describe("what is wrong with a deposit", () => {
  /** Changes of a body that is otherwise good, from the first check to the last that needs no chain. */
  const changes: readonly [string, (body: Body) => void][] = [
    ["channel_id_mismatch", ({ payload }) => (payload.channelConfig.withdrawDelay = 901)],
    ["receiver_mismatch", ({ requirements }) => (requirements.payTo = newAccount())],
    ["receiver_authorizer_mismatch", ({ requirements }) => delete requirements.extra.receiverAuthorizer],
    ["withdraw_delay_mismatch", ({ requirements }) => (requirements.extra.withdrawDelay = 901)],
    ["payload_type", ({ requirements }) => (requirements.extra.assetTransferMethod = "permit2")],
    ["missing_eip712_domain", ({ requirements }) => delete requirements.extra.name],
    ["receive_authorization_signature", ({ authorization }) => (authorization.validBefore += "0")],
    ["receive_authorization_signature", ({ payload }) => (payload.deposit.amount = "9999")],
    ["voucher_signature", ({ payload }) => (payload.voucher.maxClaimableAmount = "1001")],
    ["cumulative_below_claimed", ({ requirements }) => (requirements.amount = "1001")],
  ];
  test.each(changes)("%s", async (name, change) => {
    const buyer = await createChannelBuyer(chain);
    const terms = { receiver: newAccount(), receiverAuthorizer: newAccount() };
    const body = structuredClone(await signChannelPayment(buyer, channelRequirements(chain, terms)));
    const { payload } = body.paymentPayload;
    const authorization = payload.deposit.authorization.erc3009Authorization;
    change({ payload, authorization, requirements: body.paymentRequirements });
    for (const operation of ["verify", "settle"] as const) {
      const { invalidReason, errorReason } = (await post(harness, operation, body)).body;
      expect(invalidReason ?? errorReason).toBe(reason(name));
    }
    expect(await balanceOf(harness, buyer.account.address)).toBe(50_000n);
  });

  test.each([
    ["insufficient_balance", "eip3009"],
    ["permit2_allowance_required", "permit2"],
  ] as const)("%s", async (name, method) => {
    const buyer = await createChannelBuyer(chain, "eip3009");
    const terms = { receiver: newAccount(), receiverAuthorizer: newAccount(), method };
    const requirements = channelRequirements(chain, terms);
    const amount = name === "insufficient_balance" ? "50000" : "1000";
    const body = await signChannelPayment(buyer, { ...requirements, amount });
    expect((await post(harness, "verify", body)).body).toMatchObject({
      ...{ isValid: false, invalidReason: reason(name) },
    });
  });
});
