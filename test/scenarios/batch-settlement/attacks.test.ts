import { decodeFunctionData } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import {
  actionsOf,
  channelAction,
  channelRequirements,
  claimRow,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
  signClaim,
} from "../../support/channels.ts";
import { replacedEverywhere } from "../../support/hostile-values.ts";
import { whileMining } from "../../support/mining.ts";
import { runningChain } from "../../support/running-chain.ts";
import { addRival, type Body, balanceOf, post, startTestHarness } from "../../support/service.ts";

/* What buyers, other organizations and mistaken shops could gain, or lose, by requests for channels that are unusual. */

let harness: RunningHarness;
let chain: HarnessChain;
let rivalKey: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
  rivalKey = await addRival(harness);
});
afterAll(() => harness?.close());

const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;
const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;
const { address: receiverAuthorizer } = harnessAccounts.authorizer;

/** The transactions that the operator has sent. */
const sent = async () =>
  Number(await chain.node.request("eth_getTransactionCount", harnessAccounts.operator.address, "pending"));

/** Ends the mining of blocks while something is done. */
async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
  await chain.node.request("evm_setAutomine", false);
  await chain.node.request("evm_setIntervalMining", 0);
  try {
    return await work();
  } finally {
    await chain.node.request("evm_setAutomine", true);
    await chain.node.request("evm_mine");
  }
}

/** Settles as a caller who leaves before the answer. */
function settleUntil(signal: AbortSignal, body: Body) {
  const headers = { "content-type": "application/json", authorization: localOrganization.apiKey };
  const request = { method: "POST", signal, headers, body: JSON.stringify(body) };
  return fetch(`${harness.description.facilitator.url}/settle`, request).catch(() => undefined);
}

const termsFor = (receiver: Hex = newAccount()) =>
  channelRequirements(chain, { receiver, receiverAuthorizer });

test("two organizations that deposit into a new channel at once: one has it, and the other is told so", async () => {
  const buyer = await createChannelBuyer(chain);
  const terms = termsFor();
  const deposits = [await signChannelPayment(buyer, terms), await signChannelPayment(buyer, terms)];
  expect(deposits[0].paymentPayload.payload.voucher.channelId).toBe(
    deposits[1].paymentPayload.payload.voucher.channelId,
  );
  const answers = await Promise.all([
    post(harness, "settle", deposits[0]),
    post(harness, "settle", deposits[1], { authorization: rivalKey }),
  ]);
  const outcomes = answers.map(({ body }) => [body.success, body.errorReason]);
  expect(outcomes.filter(([success]) => success)).toHaveLength(1);
  expect(outcomes).toContainEqual([false, reason("receiver_authorizer_mismatch")]);
  expect(await balanceOf(harness, buyer.account.address)).toBe(40_000n);
});

describe("a deposit that is under way, sent again with another voucher", () => {
  test("gives nobody a voucher that was never checked", async () => {
    const buyer = await createChannelBuyer(chain);
    const first = await signChannelPayment(buyer, termsFor());
    const forged: Body = structuredClone(first);
    const { voucher } = forged.paymentPayload.payload;
    voucher.maxClaimableAmount = "9000";
    await whileHeld(async () => {
      const before = await sent();
      const leaving = new AbortController();
      const left = settleUntil(leaving.signal, first);
      await expect.poll(sent).toBe(before + 1);
      leaving.abort();
      await left;
      expect((await post(harness, "verify", forged)).body).toMatchObject({ isValid: false });
      expect((await post(harness, "verify", first)).body).toMatchObject({ isValid: true });
      const { paymentRequirements } = first;
      const dearer = { ...first, paymentRequirements: { ...paymentRequirements, amount: "1001" } };
      expect((await post(harness, "verify", dearer)).body).toMatchObject({
        ...{ isValid: false, invalidReason: reason("cumulative_below_claimed") },
      });
    });
    expect((await whileMining(chain, post(harness, "settle", forged))).body).toMatchObject({
      success: false,
    });
    expect((await whileMining(chain, post(harness, "settle", first))).body).toMatchObject({ success: true });
  });
});

describe("rows of one channel", () => {
  /** A deposit whose voucher is for 1,000, and the actions of its shop. */
  async function open() {
    const deposit = await signChannelPayment(await createChannelBuyer(chain), termsFor());
    expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
    const { receiver } = deposit.paymentPayload.payload.channelConfig;
    const id: Hex = deposit.paymentPayload.payload.voucher.channelId;
    const { refund } = actionsOf(chain, deposit);
    const rows = (...totals: readonly string[]) => totals.map((total) => claimRow(deposit, total));
    const act = async (payload: object) =>
      (await post(harness, "settle", channelAction(chain, receiver, payload))).body;
    return { id, rows, act, refund: refund.paymentPayload.payload };
  }

  test.each([
    [["700", "500"], "9300"],
    [["500", "700"], "9300"],
    [["700", "700"], "9300"],
    [["100", "700"], "9300"],
  ] as const)("%j in a refund are claimed as the largest", async (totals, amount) => {
    const { id, rows, act, refund } = await open();
    expect(await act({ type: "claim", claims: rows("200") })).toMatchObject({ success: true });
    expect(await act({ ...refund, claims: rows(...totals) })).toMatchObject({ success: true, amount });
    expect(await readChannelState(chain, id)).toEqual([700n, 700n]);
  });

  test("a refund is signed for what its claim leaves: others could submit it without the claim", async () => {
    const { rows, act, refund } = await open();
    const answer = await act({ ...refund, amount: "999999999", claims: rows("700") });
    expect(answer).toMatchObject({ success: true, amount: "9300" });
    const { input } = (await chain.node.request("eth_getTransactionByHash", answer.transaction)) as Body;
    const { args } = decodeFunctionData({ abi: mockBatchSettlementAbi, data: input });
    const calls = ((args ?? [[]])[0] as Hex[]).map((data) =>
      decodeFunctionData({ abi: mockBatchSettlementAbi, data }),
    );
    expect(calls.map(({ functionName }) => functionName)).toEqual([
      "claimWithSignature",
      "refundWithSignature",
    ]);
    expect(calls[1]?.args?.[1]).toBe(9_300n);
  });

  test("a refund whose answer was lost gives no success to one that claims more", async () => {
    const { id, rows, act, refund } = await open();
    await whileHeld(async () => {
      const before = await sent();
      const leaving = new AbortController();
      const { receiver } = refund.channelConfig;
      const body = channelAction(chain, receiver, { ...refund, claims: rows("500") });
      const left = settleUntil(leaving.signal, body);
      await expect.poll(sent).toBe(before + 1);
      leaving.abort();
      await left;
    });
    const more = await whileMining(chain, act({ ...refund, claims: rows("700") }));
    expect(more).toMatchObject({ success: false });
    expect((await readChannelState(chain, id))[1]).toBe(500n);
    expect(await act({ ...refund, claims: rows("500") })).toMatchObject({ success: true, amount: "9300" });
  });

  test("in a claim they are claimed as the largest", async () => {
    const { id, rows, act } = await open();
    expect(await act({ type: "claim", claims: rows("700", "500", "700") })).toMatchObject({ success: true });
    expect(await readChannelState(chain, id)).toEqual([10_000n, 700n]);
  });
});

test("a claim counts against the gas budget with all of its rows", async () => {
  const { organizations } = harness;
  const shop = privateKeyToAccount(generatePrivateKey());
  const receiver = newAccount();
  const terms = channelRequirements(chain, { receiver, receiverAuthorizer: shop.address });
  const rows: ReturnType<typeof claimRow>[] = [];
  for (let index = 0; index < 8; index++) {
    const deposit = await signChannelPayment(await createChannelBuyer(chain), terms);
    expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
    rows.push(claimRow(deposit, "700"));
  }
  await organizations.create({ id: "org_frugal", name: "Frugal" });
  await organizations.setRecipient("org_frugal", "base", receiver);
  const { baseFeePerGas } = (await chain.node.request("eth_getBlockByNumber", "latest", false)) as Body;
  const dailyGasBudget = 120_000n * (2n * BigInt(baseFeePerGas) + 2n * 10n ** 9n);
  await organizations.setLimits("org_frugal", "base", { dailyGasBudget });
  const { key: authorization } = await organizations.createKey("org_frugal", { scopes: ["settle"] });
  const claim = async (claims: typeof rows) =>
    post(harness, "settle", await signClaim(chain, claims, shop), { authorization });
  expect((await claim(rows)).status).toBe(429);
  // That of payers with code is smaller: what pays out to a wallet runs none of its code.
  await chain.node.request("anvil_setCode", receiver, "0x00");
  expect((await claim(rows.slice(0, 1))).body).toMatchObject({ success: true });
});

test("payouts of two tokens to one receiver are two", async () => {
  const { waysToPay } = await import("../../../src/methods/on-chain/ways-to-pay.ts");
  const receiver = newAccount();
  const nonceOf = (token: Hex) => {
    const body = channelAction(chain, receiver, { type: "settle", receiver, token });
    body.paymentPayload.accepted.asset = token;
    body.paymentRequirements.asset = token;
    const parsed = waysToPay.parse(body);
    return parsed.ok ? parsed.request.payment.nonce : parsed.invalid.message;
  };
  expect(nonceOf(newAccount())).not.toBe(nonceOf(newAccount()));
});

test("a claim of as many rows as public shops put into one is read", async () => {
  const deposit = await signChannelPayment(await createChannelBuyer(chain), termsFor());
  const { channelConfig } = deposit.paymentPayload.payload;
  const row = claimRow(deposit, "700");
  const claims = Array.from({ length: 100 }, (_, index) => {
    const salt = `0x${index.toString(16).padStart(64, "f")}`;
    return { ...row, voucher: { ...row.voucher, channel: { ...channelConfig, salt } } };
  });
  const claimAuthorizerSignature = `0x${"ab".repeat(65)}`;
  const body = channelAction(chain, channelConfig.receiver, {
    type: "claim",
    claims,
    claimAuthorizerSignature,
  });
  const counted = await harness.faults.add({ network: "base", method: "eth_call", kind: "delay", ms: 1 });
  const answer = await post(harness, "settle", body);
  const fault = (await harness.faults.list()).find(({ id }) => id === counted.id);
  await harness.faults.remove(counted.id);
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ success: false, errorReason: reason("claim_simulation_failed") });
  // To find rows by halves takes twice as many simulations as there are rows.
  expect(fault?.fired).toBeLessThan(5);
});

test("members of a wrong kind, or out of all bounds, crash nothing and move nothing", async () => {
  const buyer = await createChannelBuyer(chain);
  const deposit = await signChannelPayment(buyer, termsFor());
  expect((await post(harness, "settle", deposit)).body).toMatchObject({ success: true });
  const { channelConfig, voucher } = deposit.paymentPayload.payload;
  const { claim, settle, refund } = actionsOf(chain, deposit);
  const payload = { type: "voucher", channelConfig, voucher };
  const bodies = [deposit, { ...deposit, paymentPayload: { ...deposit.paymentPayload, payload } }];
  const forged = `0x${"ab".repeat(65)}`;
  for (const action of [claim, refund]) {
    const signatures = { claimAuthorizerSignature: forged, refundAuthorizerSignature: forged };
    Object.assign(action.paymentPayload.payload, signatures);
    bodies.push(action);
  }
  const before = await sent();
  const values = [
    null,
    -1,
    2 ** 40,
    "12n",
    `${2n ** 128n}`,
    `${2n ** 256n - 1n}`,
    `0x${"FF".repeat(32)}`,
    {},
  ];
  const statuses = new Set<number>();
  for (const value of values) {
    for (const body of [...bodies, settle]) {
      for (const changed of replacedEverywhere(body, value)) {
        const operation = body === settle ? "verify" : "settle";
        statuses.add((await post(harness, operation, changed)).status);
      }
    }
  }
  expect([...statuses]).toEqual([200]);
  expect(await sent()).toBe(before);
  expect(await readChannelState(chain, voucher.channelId)).toEqual([10_000n, 0n]);
});
