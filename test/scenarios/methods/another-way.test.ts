import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { selector } from "../../../src/chain/views.ts";
import { buildRequirements } from "../../../src/methods/build-request.ts";
import { summariesOf } from "../../../src/observe/timeline/summary.ts";
import { createTimeline } from "../../../src/observe/timeline/timeline.ts";
import { addressWord, type Hex, uintWord } from "../../../src/protocol/hex.ts";
import { settlementId } from "../../../src/protocol/signed-payment.ts";
import type { Composition, Running } from "../../support/composition.ts";
import { accountOf } from "../../support/key-accounts.ts";
import { spender, transferFrom } from "../../support/methods/transfer-from/transfer-from-method.ts";
import { spenderCode } from "../../support/methods/transfer-from/transfer-from-settling.ts";
import { transferFromWays } from "../../support/methods/transfer-from/transfer-from-ways.ts";
import type { Body } from "../../support/service.ts";
import { settleAfterDeath, startServiceProcess } from "../../support/service-process.ts";
import { useComposition } from "../../support/use-composition.ts";

/*
 * A way to pay that the service has never heard of, from a file of the tests: all that a payment meets is there for it,
 * without a change outside of that file.
 */

const payer = accountOf("approving payer");
const value = 10_000n;
const settledAs = { success: true, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) };

const composition = useComposition();
beforeAll(async () => {
  const { chain } = composition;
  const { request } = createLocalRpc(chain.rpcUrl);
  await request("anvil_setCode", spender, spenderCode(chain.asset.address));
  await chain.fund(payer.address, 1_000_000n);
  await approve(1_000_000n);
});

async function approve(amount: bigint): Promise<void> {
  const { chain } = composition;
  const { request } = createLocalRpc(chain.rpcUrl);
  await chain.setBalance(payer.address, 10n ** 18n);
  await request("anvil_impersonateAccount", payer.address);
  const data = `${selector("approve(address,uint256)")}${addressWord(spender)}${uintWord(amount)}`;
  await request("eth_sendTransaction", { from: payer.address, to: chain.asset.address, data });
  await chain.mine();
}

async function sign(): Promise<Body> {
  const { asset, network, facilitatorContract } = composition.chain;
  const signer = { ...payer, signDigest: (hash: Hex) => payer.sign({ hash }) };
  const payment = await transferFrom.sign(signer, {
    ...{ asset, chainId: network.chainId, to: facilitatorContract, value },
    validBefore: (await composition.chain.now()) + 600n,
  });
  const paymentRequirements = buildRequirements({
    ...{ x402Version: 2, network, asset, payTo: facilitatorContract, amount: value },
    scheme: transferFrom.scheme,
    resource: "https://shop.example/",
  });
  const payload = transferFrom.write(payment);
  const body: unknown = {
    paymentPayload: { x402Version: 2, accepted: paymentRequirements, payload },
    paymentRequirements,
  };
  return body as Body;
}

const start = (options: Parameters<Composition["start"]>[0] = {}) =>
  composition.start({ ways: transferFromWays, ...options });
const settle = async (running: Running, body: Body) => (await composition.post(running, "settle", body)).body;
const idOf = (body: Body) => {
  const { nonce } = Reflect.get(body.paymentPayload.payload, "transfer");
  return settlementId(8453, spender, payer.address, nonce);
};

test("verify and settle: the money moves once, and a repeat is told so", async () => {
  const running = await start();
  const body = await sign();
  const before = await composition.recipientBalance();
  expect((await composition.post(running, "verify", body)).body).toMatchObject({
    isValid: true,
    payer: payer.address,
  });
  expect(await settle(running, body)).toMatchObject(settledAs);
  expect(await settle(running, body)).toMatchObject({
    success: false,
    errorReason: "invalid_transaction_state",
  });
  expect((await composition.recipientBalance()) - before).toBe(value);
});

test("a wrong signature, another amount and a missing approval are refused", async () => {
  const running = await start();
  const forged = await sign();
  Reflect.set(forged.paymentPayload.payload, "signature", `0x${"11".repeat(65)}`);
  const cheap = await sign();
  Reflect.set(cheap.paymentRequirements, "amount", "20000");
  for (const [body, invalidReason] of [
    [forged, "invalid_exact_evm_payload_signature"],
    [cheap, "invalid_exact_evm_payload_authorization_value_mismatch"],
  ] as const) {
    expect((await composition.post(running, "verify", body)).body).toMatchObject({
      isValid: false,
      invalidReason,
    });
  }
  await approve(0n);
  expect(await settle(running, await sign())).toMatchObject({
    success: false,
    errorReason: "insufficient_funds",
  });
  await approve(1_000_000n);
});

test("many at once share transactions", async () => {
  const running = await start({ settleWaitMs: 20_000 });
  const before = await composition.operatorTransactions();
  const release = await composition.holdMining();
  const first = settle(running, await sign());
  await composition.untilSent();
  const bodies = await Promise.all(Array.from({ length: 12 }, sign));
  const others = bodies.map((body) => settle(running, body));
  await composition.untilSent();
  await release();
  for (const answer of await Promise.all([first, ...others])) expect(answer).toMatchObject(settledAs);
  expect((await composition.operatorTransactions()) - before).toBeLessThan(8);
});

test("a transaction that succeeds without the transfer is no success", async () => {
  const { chain } = composition;
  const { request } = createLocalRpc(chain.rpcUrl);
  const running = await start({ settleWaitMs: 3_000 });
  const before = await composition.recipientBalance();
  const doNothing = "0x00";
  await request("anvil_setCode", spender, doNothing);
  onTestFinished(async () => {
    await request("anvil_setCode", spender, spenderCode(chain.asset.address));
  });
  const { status, body } = await composition.post(running, "settle", await sign());
  expect({ status, body }).toMatchObject({
    status: 503,
    body: { success: false, errorReason: "settlement_pending" },
  });
  const { transaction } = Object(body);
  expect(await request("eth_getTransactionReceipt", transaction)).toMatchObject({ status: "0x1" });
  expect(await composition.recipientBalance()).toBe(before);
});

test("a block that vanishes takes nothing with it: the payment is settled once, in another", async () => {
  const running = await start({
    network: composition.configuration({ confirmations: 3 }),
    settleWaitMs: 20_000,
  });
  const before = await composition.recipientBalance();
  const body = await sign();
  const settling = settle(running, body);
  await composition.untilSent();
  await expect.poll(composition.recipientBalance).toBe(before + value);
  await createLocalRpc(composition.chain.rpcUrl).request("anvil_reorg", 1, []);
  const mining = setInterval(() => void composition.chain.mine(), 200);
  onTestFinished(() => clearInterval(mining));
  expect(await settling).toMatchObject(settledAs);
  expect((await composition.recipientBalance()) - before).toBe(value);
});

describe("the studio", () => {
  test("shows who paid what, and how it went", async () => {
    const serviceId = "looked at";
    const running = await start({ serviceId });
    const timeline = createTimeline(serviceId);
    onTestFinished(() => timeline.close());
    const body = await sign();
    expect(await settle(running, body)).toMatchObject(settledAs);
    await expect
      .poll(() => summariesOf(timeline.records()).find(({ id }) => id === idOf(body)))
      .toMatchObject({
        ...{ network: "base", payer: payer.address, amount: `${value}` },
        settle: { outcome: "settled" },
      });
  });
});

test.each(["claimed, not broadcast", "broadcast, not watched", "mined, not recorded"] as const)(
  "killed when %s: the next process answers as the chain shows, and the payer is charged once",
  async (dieAt) => {
    const { answer, received } = await settleAfterDeath(composition, await sign(), {
      dieAt,
      transferFrom: true,
    });
    expect(answer).toMatchObject(settledAs);
    expect(received).toBe(value);
  },
);

test("an instance that does not know the way to pay leaves it to one that does, and goes on with the rest", async () => {
  const before = await composition.recipientBalance();
  const body = await sign();
  const first = await startServiceProcess(composition, composition.databaseUrl(), {
    dieAt: "claimed, not broadcast",
    transferFrom: true,
  });
  await first.settleAndDie(body);

  const log: string[] = [];
  const older = await composition.start({ log });
  // The payment's transaction is sent: this one, by the same key, comes after it.
  expect(await settle(older, await composition.payment())).toMatchObject(settledAs);
  expect(log.join("")).toContain("in a way that this version does not know");
  await composition.stop(older);

  const newer = await start();
  await expect.poll(() => settle(newer, body)).toMatchObject(settledAs);
  expect((await composition.recipientBalance()) - before).toBe(2n * value);
});
