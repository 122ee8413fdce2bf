import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { Running } from "../../../test/support/composition.ts";
import { altering } from "../../../test/support/misbehaviour.ts";
import { runHere } from "../../../test/support/run-here.ts";
import type { Body } from "../../../test/support/service.ts";
import { signAs } from "../../../test/support/sign-as.ts";
import { forwardingTo, startStubNode } from "../../../test/support/stub-node.ts";
import { useComposition } from "../../../test/support/use-composition.ts";
import { mockOddTokenDeployedBytecode } from "../../contracts/mockTokens.ts";
import { buildPaymentRequest } from "../../methods/exact-eip3009/eip3009-method.ts";
import { encodeSubmission } from "../../methods/exact-eip3009/on-chain/token-calls.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { type Address, addressWord, type Hex, keccak256, uintWord } from "../../protocol/hex.ts";
import { settlementId } from "../../protocol/signed-payment.ts";

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

function idOf(body: Body, asset: Address = odd.address): Hex {
  const { from, nonce } = body.paymentPayload.payload.authorization;
  return settlementId(composition.chain.network.chainId, asset, from, nonce);
}

async function stateOf({ url, key }: Running, body: Body): Promise<unknown> {
  const id = idOf(body);
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

describe("settlements reexamine", () => {
  async function reexamine(...options: string[]) {
    return reexamineAt(composition.chain.rpcUrl, ...options);
  }

  async function reexamineAt(rpcUrl: string, ...options: string[]) {
    const { code, stdout } = await runHere(["settlements", "reexamine", "--json", ...options], {
      BASE_RPC_URL: rpcUrl,
      FACILITATOR_CONTRACT_MAINNET: composition.chain.facilitatorContract,
      CONFIRMATIONS: "base=1",
      DATABASE_URL: composition.databaseUrl(),
    });
    return { code, settlements: JSON.parse(stdout).settlements };
  }

  /** Settles a payment; `meanwhile` makes its transaction one that proves nothing. */
  async function stick(running: Running, payment: Body, meanwhile: () => Promise<unknown>) {
    const before = await composition.operatorTransactions();
    const release = await composition.holdMining();
    composition.proxy.take();
    const answer = composition.post(running, "settle", payment);
    await composition.untilSent();
    await meanwhile();
    await release();
    await expect.poll(() => composition.operatorTransactions(), { timeout: 20_000 }).toBe(before + 1);
    expect((await answer).body).not.toMatchObject({ success: true });
  }

  test("leaves what may still be paid, and ends what was never used once it has expired", async () => {
    const running = await composition.start({ network: network(), settleWaitMs: 1_000 });
    const payment = await oddPayment();
    const { from, nonce } = payment.paymentPayload.payload.authorization;
    await stick(running, payment, () => write(useSlot(from, nonce), 1n));
    const ofThis = ["--id", idOf(payment)];

    expect((await reexamine()).settlements).toEqual([]);
    expect(await reexamine(...ofThis)).toMatchObject({ code: 1, settlements: [{ outcome: "undecided" }] });
    await write(useSlot(from, nonce), 0n);
    expect(await reexamine(...ofThis)).toMatchObject({ code: 1, settlements: [{ outcome: "undecided" }] });
    expect(await stateOf(running, payment)).toMatchObject({ state: "submitted" });

    await composition.chain.advanceTime(3_600);
    const ended = { code: 0, settlements: [{ outcome: "failed", settlement: idOf(payment) }] };
    expect(await reexamine("--dry-run", ...ofThis)).toMatchObject(ended);
    expect(await stateOf(running, payment)).toMatchObject({ state: "submitted" });
    expect(await reexamine(...ofThis)).toMatchObject(ended);
    expect(await stateOf(running, payment)).toMatchObject({ state: "failed" });
    const again = await runHere(["settlements", "reexamine", ...ofThis], {
      BASE_RPC_URL: composition.chain.rpcUrl,
      FACILITATOR_CONTRACT_MAINNET: composition.chain.facilitatorContract,
      DATABASE_URL: composition.databaseUrl(),
    });
    expect(again.code).toBe(1);
  });

  test("says of one that somebody else had submitted that no log proves it, and does not end it", async () => {
    const running = await composition.start({ network: network(), settleWaitMs: 1_000 });
    const payment = await oddPayment();
    const { authorization, signature } = payment.paymentPayload.payload;
    await stick(running, payment, async () => {
      const from = harnessAccounts.treasury.address;
      await request("anvil_impersonateAccount", from);
      const data = encodeSubmission(authorization, signature);
      const fees = { maxPriorityFeePerGas: "0x2540be400", maxFeePerGas: "0x174876e800" };
      await request("eth_sendTransaction", { from, to: odd.address, data, ...fees });
    });
    await composition.chain.advanceTime(3_600);
    const { code, settlements } = await reexamine("--id", idOf(payment));
    expect({ code, settlements }).toMatchObject({ code: 1, settlements: [{ outcome: "undecided" }] });
    expect(await stateOf(running, payment)).toMatchObject({ state: "submitted", failure: null });
  });

  test.each([
    { to: "the facilitator contract", outcome: "recovering", state: "failed" },
    { to: "its payee", outcome: "settled", state: "settled" },
  ])("of one that somebody else submitted to $to is $outcome", async ({ to, outcome, state }) => {
    const { chain } = composition;
    const { asset } = chain;
    const straight = outcome === "settled";
    const payment = await composition.payment("funded", 600, 1, { straight });
    const first = await composition.start({ settleWaitMs: 200 });
    const mined = await composition.operatorTransactions();
    const release = await composition.holdMining();
    composition.proxy.take();
    const pending = composition.post(first, "settle", payment);
    await composition.untilSent();
    await pending;
    await composition.stop(first);
    const from = harnessAccounts.treasury.address;
    await request("anvil_impersonateAccount", from);
    const { authorization, signature } = payment.paymentPayload.payload;
    const direct = await request("eth_sendTransaction", {
      ...{ from, to: asset.address, data: encodeSubmission(authorization, signature) },
      ...{ maxPriorityFeePerGas: "0x2540be400", maxFeePerGas: "0x174876e800" },
    });
    await release();
    await expect.poll(() => composition.operatorTransactions(), { timeout: 20_000 }).toBe(mined + 1);

    // As of a token that returns silently for a used authorization.
    const node = await startStubNode(
      altering(forwardingTo(chain.rpcUrl), "eth_getTransactionReceipt", (receipt) =>
        Reflect.get(Object(receipt), "status") === "0x0"
          ? { ...Object(receipt), status: "0x1", logs: [] }
          : receipt,
      ),
    );
    const id = idOf(payment, asset.address);
    expect(await reexamineAt(node.url, "--id", id), to).toMatchObject({
      code: 0,
      settlements: [{ outcome, transaction: direct }],
    });
    await node.stop();
    const shown = await runHere(["settlements", "show", "--id", id, "--json"], {
      DATABASE_URL: composition.databaseUrl(),
    });
    expect(JSON.parse(shown.stdout)).toMatchObject({ state });
  });

  test("finds a success that no service has seen, which is answered once", async () => {
    const first = await composition.start({ settleWaitMs: 200 });
    const payment = await composition.payment();
    const before = await composition.recipientBalance();
    const mined = await composition.operatorTransactions();
    const release = await composition.holdMining();
    composition.proxy.take();
    const pending = composition.post(first, "settle", payment);
    await composition.untilSent();
    await pending;
    await composition.stop(first);
    await release();
    await expect.poll(() => composition.operatorTransactions(), { timeout: 20_000 }).toBe(mined + 1);

    const { asset } = composition.chain;
    expect(await reexamine("--id", idOf(payment, asset.address))).toMatchObject({
      code: 0,
      settlements: [{ outcome: "settled" }],
    });
    const second = await composition.start();
    const repeats = [];
    for (let count = 0; count < 3; count++) {
      const { body } = await composition.post(second, "settle", payment);
      repeats.push((body as { success: boolean }).success);
    }
    expect(repeats).toEqual([true, false, false]);
    expect(await composition.recipientBalance()).toBe(before + 10_000n);
  });
});
