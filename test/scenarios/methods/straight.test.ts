import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { mockGasBurningWalletDeployedBytecode } from "../../../src/contracts/mockWallets.ts";
import { decodeCall } from "../../../src/methods/on-chain/decode-call.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { type Address, type Hex, quantity, sameAddress, toHex } from "../../../src/protocol/hex.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import type { Running } from "../../support/composition.ts";
import { value } from "../../support/recovery-scene.ts";
import type { Body } from "../../support/service.ts";
import { settleAfterDeath } from "../../support/service-process.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * Payments that go straight to the merchant's own address, as public facilitators have it. Whoever submits one, the
 * merchant has the money: what matters is that whoever asked for it first hears of its success, once, and nobody else.
 */

const scene = useRecoveryScene();

let merchant: Address;
let strandedBefore = 0n;
beforeEach(async () => {
  merchant = toHex(globalThis.crypto.getRandomValues(new Uint8Array(20)));
  strandedBefore = await scene.stranded();
});

const start = (network: Partial<NetworkConfig> = {}, options: { settleWaitMs?: number } = {}) =>
  scene.startService({ network: { payTo: "any", ...network }, ...options });
const sign = (to: Address = merchant) => scene.sign("funded", {}, to);
const answerOf = ({ body }: JsonResponse) =>
  body as { success: boolean; errorReason?: string; errorMessage?: string; transaction: Hex };
const settle = async (running: Running, body: Body) => answerOf(await scene.post(running, "settle", body));
const verify = async (running: Running, body: Body) => (await scene.post(running, "verify", body)).body;
const refused = { success: false, errorReason: "invalid_transaction_state", transaction: "" };
const asRival = (running: Running & { rivalKey: string }) => ({ ...running, key: running.rivalKey });
const mined = (transaction: Hex) =>
  createLocalRpc(scene.chain.rpcUrl).request("eth_getTransactionReceipt", transaction);

/** The merchant has so much, and nobody else anything. */
async function expectMoney(paid: bigint): Promise<void> {
  expect({
    merchant: await scene.balanceOf(merchant),
    recipient: await scene.balanceOf(scene.recipient()),
    rival: await scene.balanceOf(scene.rivalRecipient()),
    stranded: (await scene.stranded()) - strandedBefore,
  }).toEqual({ merchant: paid, recipient: 0n, rival: 0n, stranded: 0n });
}

/** A success is handed over once, and a public server's verify before it lets it pass. */
async function expectHandedOverOnce(running: Running, body: Body, transaction: Hex): Promise<void> {
  expect(await verify(running, body)).toMatchObject({ isValid: true });
  expect(await settle(running, body)).toMatchObject({ success: true, transaction });
  await expectClosed(running, body, transaction);
}

async function expectClosed(running: Running, body: Body, transaction: Hex): Promise<void> {
  const again = await settle(running, body);
  expect(again).toMatchObject(refused);
  expect(again.errorMessage).toContain(transaction);
  expect(await verify(running, body)).toMatchObject({ isValid: false });
  await scene.severalRounds();
  await expectMoney(value);
}

test("verify and settle: the merchant is paid by one transaction to the token, and a repeat is told so", async () => {
  const service = await start();
  const body = await sign();
  expect(await verify(service, body)).toMatchObject({ isValid: true });
  const { success, transaction } = await settle(service, body);
  expect(success).toBe(true);
  expect(await mined(transaction)).toMatchObject({ to: scene.chain.asset.address.toLowerCase() });
  expect(await scene.settlement(service, body)).toMatchObject({ state: "settled", recipient: merchant });
  await expectClosed(service, body, transaction);
});

test("the facilitator contract stays open, beside it", async () => {
  const service = await start();
  expect(await settle(service, await scene.sign("funded"))).toMatchObject({ success: true });
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
});

describe("a payment that a third party submits before our transaction is mined", () => {
  test("is the success it is, with their transaction, within the same answer", async () => {
    const service = await start();
    const body = await sign();
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    const theirs = await scene.sendAhead(scene.submission(body));
    await release();
    expect(answerOf(await answer)).toMatchObject({ success: true, transaction: theirs });
    expect(await scene.settlement(service, body)).toMatchObject({
      ...{ state: "settled", transaction: theirs, failure: null },
    });
    await expectClosed(service, body, theirs);
  });

  test("and where blocks have to be deep", async () => {
    const service = await start({ confirmations: 3 });
    const body = await sign();
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    const theirs = await scene.sendAhead(scene.submission(body));
    await release();
    const stopMining = scene.mineSteadily();
    expect(answerOf(await answer)).toMatchObject({ success: true, transaction: theirs });
    stopMining();
    await expectMoney(value);
  });

  test("is handed over later, after an answer that came too early to know", async () => {
    const service = await start({}, { settleWaitMs: 2_000 });
    const body = await sign();
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    expect(await answer).toMatchObject({ status: 503 });
    const theirs = await scene.sendAhead(scene.submission(body));
    await release();
    await scene.untilState(service, body, "settled");
    await expectHandedOverOnce(service, body, theirs);
  });

  test("is no success of another organization, neither meanwhile nor afterwards", async () => {
    const service = await start();
    const rival = asRival(service);
    const body = await sign();
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(service, body);
    expect(await settle(rival, body)).toMatchObject(refused);
    const theirs = await scene.sendAhead(scene.submission(body));
    await release();
    expect(answerOf(await answer)).toMatchObject({ success: true, transaction: theirs });
    const hidden = await settle(rival, body);
    expect(hidden).toMatchObject(refused);
    expect(JSON.stringify(hidden)).not.toContain(theirs);
    expect(await verify(rival, body)).toMatchObject({ isValid: false });
  });
});

test("a payment that is submitted after our failure was answered: its success is handed over", async () => {
  const service = await start();
  const body = await sign();
  expect(answerOf(await scene.settleBehind(service, body, scene.ofToken("pause")))).toMatchObject(refused);
  await scene.mine(scene.ofToken("unpause"));
  await scene.severalRounds();
  await expectMoney(0n);
  const theirs = await scene.mine(scene.submission(body));
  await scene.untilState(service, body, "settled");
  await expectHandedOverOnce(service, body, theirs);
});

test("a payment that was made before anybody asked for it here is nobody's success", async () => {
  const service = await start();
  const body = await sign();
  await scene.mine(scene.submission(body));
  for (const caller of [service, asRival(service)]) {
    expect(await verify(caller, body)).toMatchObject({ invalidReason: "invalid_transaction_state" });
    expect(await settle(caller, body)).toMatchObject(refused);
  }
  await scene.severalRounds();
  expect(await settle(service, body)).toMatchObject(refused);
  await expectMoney(value);
});

test("a payer who cancels the payment, or uses its nonce for another payee, has paid nothing", async () => {
  const service = await start();
  const cancelled = await sign();
  const answer = await scene.settleBehind(service, cancelled, await scene.cancellation(cancelled));
  expect(answerOf(answer)).toMatchObject(refused);
  const body = await sign();
  const { nonce } = body.paymentPayload.payload.authorization;
  const elsewhere = await scene.sign("funded", { nonce, to: scene.rivalRecipient() });
  expect(answerOf(await scene.settleBehind(service, body, scene.submission(elsewhere)))).toMatchObject(
    refused,
  );
  await scene.severalRounds();
  for (const failed of [cancelled, body]) {
    expect(await scene.settlement(service, failed)).toMatchObject({ state: "failed" });
    expect(await settle(service, failed)).toMatchObject(refused);
  }
  expect(await scene.balanceOf(merchant)).toBe(0n);
});

describe("many at once", () => {
  /** The calls of the operator in the newest blocks, of which there was one before. */
  async function callsSince(block: bigint) {
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    const newest = BigInt(String(await request("eth_blockNumber")));
    const calls = [];
    for (let number = block + 1n; number <= newest; number++) {
      const { transactions } = Object(await request("eth_getBlockByNumber", quantity(number), true));
      for (const { to, input } of transactions) calls.push(decodeCall(to, input));
    }
    return calls.filter((call) => call !== null);
  }

  test("share transactions, and none of them with payments through the contract", async () => {
    const service = await start({}, { settleWaitMs: 20_000 });
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    const release = await scene.holdMining();
    const block = BigInt(String(await request("eth_blockNumber")));
    const first = await scene.settleInPool(service, await sign());
    const bodies = await Promise.all(
      Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? sign() : scene.sign("funded"))),
    );
    const answers = bodies.map((body) => settle(service, body));
    await scene.untilInPool(3);
    await release();
    expect(answerOf(await first.answer)).toMatchObject({ success: true });
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ success: true });
    const calls = await callsSince(block);
    const namesOf = (recipient: Address) =>
      calls
        .filter(({ payments }) => payments.some((one) => sameAddress(one.recipient, recipient)))
        .map(({ name }) => name);
    expect(namesOf(merchant)).toContain("transferBatch");
    expect(namesOf(scene.recipient())).toContain("settleBatch");
    for (const name of namesOf(merchant)) expect(name).toMatch(/^transfer/);
    for (const name of namesOf(scene.recipient())) expect(name).toMatch(/^settle/);
    expect(calls.length).toBeLessThan(bodies.length);
    expect(await scene.balanceOf(merchant)).toBe(7n * value);
    expect(await scene.balanceOf(scene.recipient())).toBe(6n * value);
  });

  test("are not spoilt by one whose payer's wallet changes its mind, and burns what it may", async () => {
    const service = await start({}, { settleWaitMs: 20_000 });
    const release = await scene.holdMining();
    const first = await scene.settleInPool(service, await sign());
    const good = await Promise.all(Array.from({ length: 5 }, () => sign()));
    const bad = await scene.sign("smartWallet", {}, merchant);
    const answers = [...good, bad].map((body) => settle(service, body));
    await scene.untilInPool(2);
    await sleep(300);
    const { address } = testPayers.smartWallet;
    const { request } = createLocalRpc(scene.chain.rpcUrl);
    const code = await request("eth_getCode", address, "latest");
    await request("anvil_setCode", address, mockGasBurningWalletDeployedBytecode);
    await release();
    expect(answerOf(await first.answer)).toMatchObject({ success: true });
    const told = await Promise.all(answers);
    await request("anvil_setCode", address, code);
    expect(told.map(({ success }) => success)).toEqual([true, true, true, true, true, false]);
    expect(told.at(-1)).toMatchObject(refused);
    expect(await scene.balanceOf(merchant)).toBe(6n * value);
  });

  test("are each found where a third party submits some of them", async () => {
    const service = await start({}, { settleWaitMs: 20_000 });
    const release = await scene.holdMining();
    const first = await scene.settleInPool(service, await sign());
    const bodies = await Promise.all(Array.from({ length: 12 }, () => sign()));
    const answers = bodies.map((body) => settle(service, body));
    await scene.untilInPool(2);
    await sleep(300);
    const theirs: Hex[] = [];
    // One after the other: they have one sender.
    for (const body of bodies.slice(0, 2)) theirs.push(await scene.sendAhead(scene.submission(body)));
    await release();
    expect(answerOf(await first.answer)).toMatchObject({ success: true });
    const told = await Promise.all(answers);
    for (const answer of told) expect(answer).toMatchObject({ success: true });
    expect(told.slice(0, 2).map(({ transaction }) => transaction)).toEqual(theirs);
    const ours = new Set(told.slice(2).map(({ transaction }) => transaction));
    for (const transaction of theirs) expect(ours).not.toContain(transaction);
    // Those that come while a batch is being sent are in the next one.
    expect(ours.size).toBeLessThan(6);
    expect(await scene.balanceOf(merchant)).toBe(13n * value);
  });

  test("of which the batch reverts as a whole are sent one by one, past the paused contract", async () => {
    const service = await start({}, { settleWaitMs: 20_000 });
    const release = await scene.holdMining();
    const first = await scene.settleInPool(service, await sign());
    const answers = (await Promise.all(Array.from({ length: 4 }, () => sign()))).map((body) =>
      settle(service, body),
    );
    await scene.untilInPool(2);
    await sleep(300);
    await scene.sendAhead(scene.ofPauser("pause"));
    await release();
    expect(answerOf(await first.answer)).toMatchObject({ success: true });
    const told = await Promise.all(answers);
    await scene.mine(scene.ofPauser("unpause"));
    for (const answer of told) expect(answer).toMatchObject({ success: true });
    expect(await scene.balanceOf(merchant)).toBe(5n * value);
  });
});

describe("where a payment may go", () => {
  const policies = {
    contract: { recipient: false, stranger: false },
    recipients: { recipient: true, stranger: false },
    any: { recipient: true, stranger: true },
  } as const;
  test.each(Object.entries(policies))("with PAY_TO=%s", async (payTo, allowed) => {
    const service = await start({ payTo: payTo as keyof typeof policies });
    for (const [to, isAllowed] of [
      [scene.recipient(), allowed.recipient],
      [scene.rivalRecipient(), allowed.stranger],
      [merchant, allowed.stranger],
    ] as const) {
      const body = await sign(to);
      const invalid = { isValid: false, invalidReason: "invalid_payment_requirements" };
      expect(await verify(service, body)).toMatchObject(isAllowed ? { isValid: true } : invalid);
      const answer = await settle(service, body);
      expect(answer.success).toBe(isAllowed);
      expect(await scene.balanceOf(to)).toBe(isAllowed ? value : 0n);
      if (isAllowed) continue;
      expect(answer).toMatchObject({ errorReason: "invalid_payment_requirements", transaction: "" });
      expect(answer.errorMessage).toContain("PAY_TO=any");
    }
  });

  test("what is signed goes where the seller asks for it, and nowhere else", async () => {
    const service = await start();
    const elsewhere = await scene.sign("funded", { to: scene.rivalRecipient() }, merchant);
    const unasked = await sign();
    Object.assign(unasked.paymentRequirements, {
      ...{ payTo: undefined, scheme: undefined, maxAmountRequired: undefined, amount: `${value}` },
    });
    for (const body of [elsewhere, unasked]) {
      expect(await verify(service, body)).toMatchObject({
        invalidReason: "invalid_exact_evm_payload_recipient_mismatch",
      });
      expect(await settle(service, body)).toMatchObject({ success: false, errorReason: "invalid_payload" });
    }
    await expectMoney(0n);
  });

  test("an organization without a recipient settles what goes straight, and nothing else", async () => {
    const service = await start();
    const { organizations } = service.service;
    await organizations.create({ id: "new", name: "New" });
    const { key } = await organizations.createKey("new", { scopes: ["verify", "settle"] });
    const caller = { ...service, key };
    const body = await sign();
    expect(await verify(caller, body)).toMatchObject({
      isValid: true,
      authContext: { organizationId: "new", authMethod: "default" },
    });
    expect(await settle(caller, body)).toMatchObject({ success: true });
    await expectMoney(value);
    const through = await scene.sign("funded");
    expect((await scene.post(caller, "settle", through)).status).toBe(403);
  });

  test("to its own wallets alone, where it has none: no verdict, and no payment", async () => {
    const service = await start({ payTo: "recipients" });
    const { organizations } = service.service;
    await organizations.create({ id: "new", name: "New" });
    const { key } = await organizations.createKey("new", { scopes: ["verify", "settle"] });
    const body = await sign();
    expect(await verify({ ...service, key }, body)).toMatchObject({
      ...{ isValid: false, invalidReason: "invalid_payment_requirements" },
    });
    expect((await scene.post({ ...service, key }, "settle", body)).status).toBe(403);
    await expectMoney(0n);
  });
});

test("two organizations settle one payment at once: one has its success, and the merchant is paid once", async () => {
  const service = await start();
  const body = await sign();
  const answers = await Promise.all([settle(service, body), settle(asRival(service), body)]);
  expect(answers.map(({ success }) => success).sort()).toEqual([false, true]);
  await expectMoney(value);
});

test("a block that vanishes takes nothing with it: the payment is settled once, in another", async () => {
  const service = await start({ confirmations: 3 });
  const body = await sign();
  const answer = settle(service, body);
  await scene.untilSent();
  await expect.poll(() => scene.balanceOf(merchant)).toBe(value);
  await createLocalRpc(scene.chain.rpcUrl).request("anvil_reorg", 1, []);
  const stopMining = scene.mineSteadily();
  expect(await answer).toMatchObject({ success: true });
  stopMining();
  await expectMoney(value);
});

test("the block of a third party vanishes after its success was given: ours settles it, and nobody hears of it twice", async () => {
  const { request } = createLocalRpc(scene.chain.rpcUrl);
  const service = await start({ confirmations: 2 }, { settleWaitMs: 20_000 });
  const body = await sign();
  const release = await scene.holdMining();
  const { answer } = await scene.settleInPool(service, body);
  const theirs = await scene.sendAhead(scene.submission(body));
  await release();
  const stopMining = scene.mineSteadily();
  expect(answerOf(await answer)).toMatchObject({ success: true, transaction: theirs });
  stopMining();
  const { blockNumber } = Object(await mined(theirs));
  const goOn = await scene.holdMining();
  const depth = Number(await request("eth_blockNumber")) - Number(blockNumber) + 1;
  await request("anvil_reorg", depth, []);
  await request("anvil_dropAllTransactions");
  await expectMoney(0n);
  await goOn();
  scene.mineSteadily();
  const ours = async () => {
    const { state, transaction } = await scene.settlement(service, body);
    return state === "settled" && transaction !== theirs;
  };
  await expect.poll(ours).toBe(true);
  expect(await settle(service, body)).toMatchObject(refused);
  await expectMoney(value);
});

test("killed before anything was sent, and a third party submits it: the next process gives it as the success it is", async () => {
  const body = await scene.payment("funded", 600, 1, { straight: true });
  let theirs: Hex | undefined;
  const { answer, received } = await settleAfterDeath(scene, body, {
    dieAt: "claimed, not broadcast",
    between: async () => {
      theirs = await scene.mine(scene.submission(body));
    },
  });
  expect(answer).toMatchObject({ success: true, transaction: theirs });
  expect(received).toBe(value);
});

test("the organization lists what went straight with the merchant as its recipient", async () => {
  const service = await start();
  await settle(service, await sign());
  const { body } = await requestJson(`${service.url}/settlements`, {
    headers: { authorization: service.key },
  });
  expect(body).toMatchObject({ settlements: [{ state: "settled", recipient: merchant }] });
});
