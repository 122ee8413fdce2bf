import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { createBuyer, fundedAccount, payAgain } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";

/*
 * A chain that takes longer than a settle may wait. The public v2 server is told settlement_pending with the hash,
 * and asks once more by itself.
 */

const price = 10_000n;

let harness: RunningHarness;
let base: HarnessChain;
let proxy: TcpProxy;
let merchant: LoopbackServer;
const url = () => `${merchant.origin}/report`;

/** The traffic between the merchant's server and ours: each settle, and the HTTP status of its answer. */
let settles: { answers: number[]; onSecond: () => void };
beforeEach(() => {
  settles = { answers: [], onSecond: () => {} };
});

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], settleWaitMs: 1_500 });
  base = runningChain(harness, "base");
  proxy = await startTcpProxy(harness.description.facilitator.url, {
    onRequest: ({ line }) => line === "POST /v1/settle" && settles.answers.length === 1 && settles.onSecond(),
    onAnswer: ({ line }, status) => line === "POST /v1/settle" && settles.answers.push(status),
  });
  merchant = await startMerchant(
    { url: `${proxy.origin}/v1`, apiKey: localOrganization.apiKey },
    { "/report": { network: base.network.caip2, payTo: base.facilitatorContract, price: "$0.01" } },
  );
});
afterAll(async () => {
  await merchant?.close();
  await proxy?.close();
  await harness?.close();
});

test("mined while the server asks again: the buyer waits a little longer, and gets the goods for one charge", async () => {
  const account = await fundedAccount(base, 5n * price);
  const { promise: secondSettle, resolve } = Promise.withResolvers<void>();
  settles.onSecond = resolve;

  await base.hold();
  const buying = createBuyer(account).buy(url());
  await secondSettle;
  await base.release();
  await base.mine();

  const purchase = await buying;
  expect(settles.answers).toEqual([503, 200]);
  expect(purchase).toMatchObject({ status: 200, body: goods, receipt: { success: true } });
  expect(await payAgain(url(), purchase.payment)).toMatchObject({ status: 402 });
  expect(await balanceOf(harness, account.address)).toBe(4n * price);
});

test("mined later still: the buyer is told that it is pending, and who comes again gets the goods for the one charge", async () => {
  const account = await fundedAccount(base, 5n * price);

  await base.hold();
  const early = await createBuyer(account).buy(url());
  expect(settles.answers).toEqual([503, 503]);
  expect(early).toMatchObject({
    status: 402,
    receipt: {
      success: false,
      errorReason: "settlement_pending",
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    },
  });

  await base.release();
  await base.mine();
  expect(await payAgain(url(), early.payment)).toMatchObject({
    status: 200,
    body: goods,
    receipt: { success: true, transaction: early.receipt?.transaction },
  });
  expect(await payAgain(url(), early.payment)).toMatchObject({ status: 402 });
  expect(await balanceOf(harness, account.address)).toBe(4n * price);
});
