import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import type { Running } from "../../../test/support/composition.ts";
import type { Body } from "../../../test/support/service.ts";
import { signAs } from "../../../test/support/sign-as.ts";
import { useComposition } from "../../../test/support/use-composition.ts";
import { mockOddTokenDeployedBytecode } from "../../contracts/mockTokens.ts";
import { buildPaymentRequest } from "../../methods/exact-eip3009/eip3009-method.ts";
import { type Address, addressWord, type Hex, keccak256, uintWord } from "../../protocol/hex.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { testPayers } from "../../published/test-payers.ts";

/*
 * Payments in a token that keeps EIP-3009 and not the habits of USDC: it logs between the two events of a payment, and
 * returns silently for a used authorization.
 */

const odd = {
  address: "0x0dd0000000000000000000000000000000000dd0",
  name: "Odd",
  version: "1",
  decimals: 6,
} as const;

const composition = useComposition();
const request = (method: string, ...params: unknown[]) => composition.chain.node.request(method, ...params);

const write = (slot: Hex, value: bigint) =>
  request("anvil_setStorageAt", odd.address, slot, `0x${uintWord(value)}`);
const member = (key: string, slot: string) => keccak256(`0x${key}${slot}`);
const balanceSlot = (account: Address) => member(addressWord(account), uintWord(0n));
const useSlot = (payer: Address, nonce: Hex) =>
  member(nonce.slice(2), member(addressWord(payer), uintWord(6n)).slice(2));

beforeEach(async () => {
  await composition.chain.reset();
  await request("anvil_setCode", odd.address, mockOddTokenDeployedBytecode);
  await write(balanceSlot(testPayers.funded.address), 10n ** 12n);
});

const network = () => composition.configuration({ blockTimeMs: 50, assets: [composition.chain.asset, odd] });

async function oddPayment(): Promise<Body> {
  const { chain } = composition;
  const payTo = harnessAccounts.recipient.address;
  const signed = await signAs("funded", {
    asset: odd,
    chainId: chain.network.chainId,
    to: payTo,
    value: 10_000n,
    validBefore: (await chain.now()) + 600n,
  });
  return buildPaymentRequest({
    x402Version: 1,
    network: chain.network,
    asset: odd,
    payTo,
    amount: 10_000n,
    resource: "https://merchant.example/resource",
    ...signed,
  });
}

async function stateOf({ url, key }: Running, body: Body): Promise<unknown> {
  const { from, nonce } = body.paymentPayload.payload.authorization;
  const id = settlementId(composition.chain.network.chainId, odd.address, from, nonce);
  const response = await fetch(`${url}/settlements/${id}`, { headers: { authorization: key } });
  return response.json();
}

test("a lone payment settles whose token logs between the use and the transfer", async () => {
  const running = await composition.start({ network: network() });
  const { body } = await composition.post(running, "settle", await oddPayment());
  expect(body).toMatchObject({ success: true });
});

test("sixteen transactions that prove nothing stop nobody else, are logged once, and end with nothing but proof", async () => {
  const log: string[] = [];
  const running = await composition.start({ network: network(), settleWaitMs: 3_000, log });
  const release = await composition.holdMining();
  const { address: operator } = harnessAccounts.operator;
  // Counted in the node's pool: a transaction that is sent again must not be taken for the next one.
  const sent = async () => Number(await request("eth_getTransactionCount", operator, "pending"));
  const before = await sent();
  const payments: Body[] = [];
  const answers: Promise<{ body: unknown }>[] = [];
  for (let count = 0; count < 16; count++) {
    const payment = await oddPayment();
    payments.push(payment);
    answers.push(composition.post(running, "settle", payment));
    await expect.poll(sent, { timeout: 20_000 }).toBe(before + count + 1);
  }
  for (const { paymentPayload } of payments) {
    const { from, nonce } = paymentPayload.payload.authorization;
    await write(useSlot(from, nonce), 1n);
  }
  await release();
  await expect.poll(() => composition.operatorTransactions(), { timeout: 20_000 }).toBe(before + 16);
  for (const { body } of await Promise.all(answers)) expect(body).not.toMatchObject({ success: true });

  const honest = await composition.post(running, "settle", await composition.payment());
  expect(honest.body).toMatchObject({ success: true });

  // Long enough for dozens of looks at the usual pace.
  await sleep(1_500);
  for (const payment of payments) {
    expect(await stateOf(running, payment)).toMatchObject({ state: "submitted", failure: null });
  }
  const alarms = log.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
  expect(alarms).toHaveLength(16);
  const ready = await fetch(running.url.replace("/v1", "/readyz"));
  expect(ready.status).toBe(200);
  expect(JSON.stringify(await ready.json())).toContain("16 mined transactions");
});
