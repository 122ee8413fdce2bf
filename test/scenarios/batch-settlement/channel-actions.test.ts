import { computeChannelId } from "@x402/evm/batch-settlement/client";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { claimBatchDigest } from "../../../src/methods/batch-settlement/channel.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import {
  channelAction,
  channelRequirements,
  connectFacilitator,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
  startChannelShop,
} from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { addRival, type Body, balanceOf, post, startTestHarness } from "../../support/service.ts";

/* What shops do with their channels by this facilitator: claim, settle, refund. */

let harness: RunningHarness;
let chain: HarnessChain;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any", studio: true });
  chain = runningChain(harness, "base");
});
afterAll(() => harness?.close());

const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;
const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;
const network = "eip155:8453";

/** A shop, and a buyer who has bought there three times. */
async function openShop(options: Parameters<typeof startChannelShop>[2] = {}) {
  const { facilitator, exchanges } = connectFacilitator(harness.description.facilitator.url);
  const shop = await startChannelShop(chain, facilitator, options);
  onTestFinished(() => shop.close());
  const buyer = await createChannelBuyer(chain, options.method);
  for (let purchase = 1; purchase <= 3; purchase++) {
    expect(await buyer.buy(shop.url)).toMatchObject({ status: 200 });
  }
  const [channel] = await shop.scheme.getStorage().list();
  if (channel === undefined) throw new Error("the shop has no channel");
  const id = computeChannelId(channel.channelConfig, network);
  return { ...shop, buyer, exchanges, channel, id };
}

/** How many transactions the operator has sent. */
const sent = async () =>
  Number(await chain.node.request("eth_getTransactionCount", harnessAccounts.operator.address, "latest"));

const cases = [
  { method: "eip3009", ownKey: false },
  { method: "eip3009", ownKey: true },
  { method: "permit2", ownKey: false },
] as const;

describe.each(cases)("deposits by $method, with a key of the shop's own: $ownKey", (options) => {
  test("claim, settle and refund after three purchases; repeats send nothing", async () => {
    const { manager, receiver, buyer, exchanges, id } = await openShop(options);
    expect(await manager.claim()).toMatchObject([{ vouchers: 1 }]);
    expect(await readChannelState(chain, id)).toEqual([10_000n, 3_000n]);
    await manager.settle();
    expect(await balanceOf(harness, receiver)).toBe(3_000n);
    expect(await manager.refund()).toHaveLength(1);
    expect(await readChannelState(chain, id)).toEqual([3_000n, 3_000n]);
    expect(await balanceOf(harness, buyer.account.address)).toBe(47_000n);
    const [claimed, settled, refunded] = exchanges.slice(2).map(({ answer }) => answer as Body);
    expect(claimed).toMatchObject({ success: true, transaction: expect.stringMatching(/^0x/) });
    expect(settled).toMatchObject({ success: true, amount: "3000" });
    expect(refunded).toMatchObject({
      ...{ success: true, amount: "7000" },
      extra: { channelState: { channelId: id, balance: "3000", totalClaimed: "3000", refundNonce: "1" } },
    });
    const before = await sent();
    const answers = [];
    for (const { body } of exchanges.slice(2)) answers.push((await post(harness, "settle", body)).body);
    expect(answers.map(({ errorReason }) => errorReason)).toEqual(
      ["cumulative_below_claimed", "nothing_to_settle", "refund_no_balance"].map(reason),
    );
    expect(await sent()).toBe(before);
  });
});

const actionBody = (payTo: Hex, payload: object): Body => channelAction(chain, payTo, payload);

const asRival = async (operation: "verify" | "settle", body: Body) =>
  (await post(harness, operation, body, { authorization: await rivalKey() })).body;
let rival: Promise<string> | undefined;
const rivalKey = () => {
  rival ??= addRival(harness);
  return rival;
};

test("a shop that is paid at a contract claims, and pays back, where payers with code are refused", async () => {
  const { manager, receiver, buyer, exchanges } = await openShop();
  await chain.node.request("anvil_setCode", receiver, "0x00");
  await harness.organizations.setLimits(localOrganization.id, "base", { refusePayersWithCode: true });
  onTestFinished(() =>
    harness.organizations.setLimits(localOrganization.id, "base", { refusePayersWithCode: false }),
  );
  await manager.claimAndSettle();
  expect(await balanceOf(harness, receiver)).toBe(3_000n);
  await manager.refund();
  expect(exchanges.at(-1)?.answer).toMatchObject({ success: true });
  expect(await balanceOf(harness, buyer.account.address)).toBe(47_000n);
});

describe("a channel is of use to the organization alone that opened it", () => {
  test("a stranger's refund, with nothing but the public config, is refused", async () => {
    const { channel, buyer, receiver, id, manager } = await openShop();
    const before = await sent();
    const { channelConfig } = channel;
    const garbage = { channelId: id, maxClaimableAmount: "0", signature: `0x${"00".repeat(65)}` };
    const refund = { type: "refund", channelConfig, amount: "999999999", refundNonce: "0", claims: [] };
    const drain = actionBody(receiver, { ...refund, voucher: garbage });
    expect(await asRival("settle", drain)).toMatchObject({
      ...{ success: false, errorReason: reason("authorizer_address_mismatch") },
    });
    expect((await post(harness, "settle", drain)).body).toMatchObject({
      ...{ success: false, errorReason: reason("voucher_signature") },
    });
    const { signedMaxClaimable, signature } = channel;
    const voucher = { channelId: id, maxClaimableAmount: signedMaxClaimable, signature };
    const claims = [
      { voucher: { channel: channelConfig, maxClaimableAmount: "3000" }, signature, totalClaimed: "3000" },
    ];
    const others = [
      { ...refund, voucher },
      { type: "claim", claims },
      { type: "settle", receiver, token: chain.asset.address },
    ];
    for (const payload of others) {
      // Signing again would not make the channel theirs.
      expect(await asRival("settle", actionBody(receiver, payload))).toMatchObject({
        ...{ success: false, nextAction: "fix_request" },
      });
    }
    expect(await sent()).toBe(before);
    expect(await readChannelState(chain, id)).toEqual([10_000n, 0n]);
    expect(await balanceOf(harness, buyer.account.address)).toBe(40_000n);
    await manager.claimAndSettle();
    expect(await balanceOf(harness, receiver)).toBe(3_000n);
  });

  test("no other organization takes purchases on it, which it could never claim", async () => {
    const { address: receiverAuthorizer } = harnessAccounts.authorizer;
    const buyer = await createChannelBuyer(chain);
    const terms = channelRequirements(chain, { receiver: newAccount(), receiverAuthorizer });
    const deposit = await signChannelPayment(buyer, terms);
    expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
    const { channelConfig, voucher } = deposit.paymentPayload.payload;
    const payload = { type: "voucher", channelConfig, voucher };
    const body = { ...deposit, paymentPayload: { ...deposit.paymentPayload, payload } };
    expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
    expect(await asRival("verify", body)).toMatchObject({
      ...{ isValid: false, invalidReason: reason("receiver_authorizer_mismatch") },
    });
  });
});

describe("a claim of several channels", () => {
  /** Rows of three channels of one shop, the second of which claims more than its buyer has allowed. */
  async function openThree(receiverAuthorizer: Hex) {
    const receiver = newAccount();
    const terms = channelRequirements(chain, { receiver, receiverAuthorizer });
    const rows = [];
    for (const totalClaimed of ["700", "1001", "900"]) {
      const deposit = await signChannelPayment(await createChannelBuyer(chain), terms);
      expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
      const { channelConfig: channel, voucher } = deposit.paymentPayload.payload;
      const { maxClaimableAmount, signature, channelId } = voucher;
      rows.push({
        id: channelId as Hex,
        row: { voucher: { channel, maxClaimableAmount }, signature, totalClaimed },
      });
    }
    const ids = rows.map(({ id }) => id);
    const claim = actionBody(receiver, { type: "claim", claims: rows.map(({ row }) => row) });
    const claimed = async () => Promise.all(ids.map(async (id) => (await readChannelState(chain, id))[1]));
    return { receiver, ids, claim, claimed, rows: rows.map(({ row }) => row) };
  }

  test("a bad row is named and holds up none of the others", async () => {
    const { ids, claim, claimed } = await openThree(harnessAccounts.authorizer.address);
    const before = await sent();
    const refused = { success: false, errorReason: reason("claim_simulation_failed") };
    const first = (await post(harness, "settle", claim)).body;
    expect(first).toMatchObject(refused);
    expect(ids.map((id) => first.errorMessage.includes(id))).toEqual([false, true, false]);
    expect(first.errorMessage).toContain("ClaimExceedsCeiling");
    expect(await claimed()).toEqual([700n, 0n, 900n]);
    expect(await sent()).toBe(before + 1);
    expect((await post(harness, "settle", claim)).body).toMatchObject(refused);
    expect(await sent()).toBe(before + 1);
  });

  test("signed by the shop, it is refused with the name of the bad row", async () => {
    const shop = privateKeyToAccount(generatePrivateKey());
    const { ids, claim, claimed } = await openThree(shop.address);
    const before = await sent();
    const signed = structuredClone(claim);
    signed.paymentPayload.payload.claimAuthorizerSignature = await signBatch(shop, claim);
    const answer = (await post(harness, "settle", signed)).body;
    expect(answer).toMatchObject({ success: false, errorReason: reason("claim_simulation_failed") });
    expect(ids.map((id) => answer.errorMessage.includes(id))).toEqual([false, true, false]);
    expect(await claimed()).toEqual([0n, 0n, 0n]);
    expect(await sent()).toBe(before);
  });

  test("asked for several times at once, it is sent once, and one request gets the success", async () => {
    const { receiver, rows, claimed } = await openThree(harnessAccounts.authorizer.address);
    const before = await sent();
    const claims = [rows[0], rows[2]];
    const body = actionBody(receiver, { type: "claim", claims });
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(harness, "settle", body)));
    expect(answers.filter((answer) => answer.body.success)).toHaveLength(1);
    expect(await claimed()).toEqual([700n, 0n, 900n]);
    expect(await sent()).toBe(before + 1);
    const payout = actionBody(receiver, { type: "settle", receiver, token: chain.asset.address });
    const payouts = await Promise.all(Array.from({ length: 5 }, () => post(harness, "settle", payout)));
    expect(payouts.filter((answer) => answer.body.success)).toHaveLength(1);
    expect(await balanceOf(harness, receiver)).toBe(1_600n);
    expect(await sent()).toBe(before + 2);
  });

  function signBatch(signer: ReturnType<typeof privateKeyToAccount>, claim: Body): Promise<Hex> {
    const { claims } = claim.paymentPayload.payload;
    const rows = claims.map(({ voucher, totalClaimed, signature }: Body) => ({
      ...{ channel: voucher.channel, signature, totalClaimed: BigInt(totalClaimed) },
      maxClaimableAmount: BigInt(voucher.maxClaimableAmount),
    }));
    return signer.sign({ hash: claimBatchDigest(rows, chain.network.chainId) });
  }
});

test("those who observe the service see each of these, and what they do not know they leave out", async () => {
  const { manager, exchanges, channel, buyer, url } = await openShop();
  await manager.claimAndSettle();
  await buyer.buy(url);
  await manager.claim();
  await manager.refund();
  const { origin } = new URL(harness.description.facilitator.url);
  const list = (await (await fetch(`${origin}/payments`)).json()) as Body;
  const transactions = exchanges.flatMap(({ answer }) => Reflect.get(Object(answer), "transaction") ?? []);
  expect(transactions).toHaveLength(5);
  const shown = list.payments.filter((payment: Body) => transactions.includes(payment.transaction));
  // Newest first.
  expect(shown.map(({ amount }: Body) => amount)).toEqual(["6000", "1000", "3000", "3000", "10000"]);
  for (const { id } of shown) {
    const response = await fetch(`${origin}/payments/${id}`);
    const text = await response.text();
    expect([response.status, JSON.parse(text)]).toMatchObject([200, { payment: { method: null, id } }]);
    expect(text).not.toContain(channel.signature.slice(2));
  }
});
