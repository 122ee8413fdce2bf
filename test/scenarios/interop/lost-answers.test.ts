import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { createBuyer, fundedAccount, payAgain } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { whileMining } from "../../support/mining.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";
import {
  type ProxiedRequest,
  startTcpProxy,
  type TcpProxy,
  type TcpProxyHooks,
} from "../../support/tcp-proxy.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * The connection between the merchant's server and ours breaks. The buyer, who was told 402, sends the same payment
 * to the same server again: they get the goods, are charged once, and a third time get nothing.
 */

const price = 10_000n;
const count = Number(process.env.LOST_ANSWER_REPETITIONS ?? 5);
const repetitions = Array.from({ length: count }, (_, index) => index);

let harness: RunningHarness;
let base: HarnessChain;
let proxy: TcpProxy;
const merchants: Record<string, LoopbackServer> = {};
let hooks: TcpProxyHooks = {};

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  base = runningChain(harness, "base");
  proxy = await startTcpProxy(harness.description.facilitator.url, {
    onRequest: (request) => hooks.onRequest?.(request),
    onAnswer: (request, status) => hooks.onAnswer?.(request, status),
    onAnswered: (request, status) => hooks.onAnswered?.(request, status),
  });
  const access = { url: `${proxy.origin}/v1`, apiKey: localOrganization.apiKey };
  const { network, facilitatorContract: payTo, asset } = base;
  merchants.v2 = await startMerchant(access, {
    "/report": { network: network.caip2, payTo, price: "$0.01" },
  });
  const extra = { name: asset.name, version: asset.version };
  merchants.v1 = await startV1Merchant(access, {
    "/report": { network: "base", payTo, asset: asset.address, maxAmountRequired: String(price), extra },
  });
});
afterEach(() => {
  hooks = {};
});
afterAll(async () => {
  await Promise.all(Object.values(merchants).map((merchant) => merchant.close()));
  await proxy?.close();
  await harness?.close();
});

/** Acts on the next settle that goes through the proxy, and on no other. */
function onNextSettle(act: TcpProxyHooks): TcpProxyHooks {
  let chosen: ProxiedRequest | undefined;
  return {
    onRequest(request) {
      if (chosen !== undefined || request.line !== "POST /v1/settle") return;
      chosen = request;
      act.onRequest?.(request);
    },
    onAnswer(request, status) {
      if (request === chosen) act.onAnswer?.(request, status);
    },
    onAnswered(request, status) {
      if (request === chosen) act.onAnswered?.(request, status);
    },
  };
}

describe.each(["v1", "v2"])("%s", (version) => {
  const url = () => `${merchants[version]?.origin}/report`;

  test.each(repetitions)("a reset when the answer's first bytes arrive, time %i", async () => {
    const account = await fundedAccount(base, 5n * price);
    hooks = onNextSettle({ onAnswer: (request) => request.reset() });

    const lost = await createBuyer(account).buy(url());
    expect(lost).toMatchObject({ status: 402 });
    expect(await payAgain(url(), lost.payment)).toMatchObject({
      status: 200,
      body: goods,
      receipt: { success: true, payer: account.address },
    });
    expect(await payAgain(url(), lost.payment)).toMatchObject({ status: 402 });
    expect(await balanceOf(harness, account.address)).toBe(4n * price);
  });
});

/*
 * HAProxy resets its connections to a server when it needs them no longer: right after the answer, or after seconds.
 * That loses no answer, and the header of a payment must not buy twice.
 */
describe.each(["v1", "v2"])("behind a proxy that resets its connections, %s", (version) => {
  const url = () => `${merchants[version]?.origin}/report`;

  test.each([0, 0, 0, 1, 20, 300])("%i ms after each answer: the payment buys once", async (delay) => {
    const account = await fundedAccount(base, 5n * price);
    hooks = {
      onAnswered: (request) => {
        if (delay === 0) request.resetService();
        else setTimeout(() => request.resetService(), delay);
      },
    };
    const bought = await createBuyer(account).buy(url());
    expect(bought).toMatchObject({ status: 200, body: goods });
    expect(await payAgain(url(), bought.payment)).toMatchObject({ status: 402 });
    expect(await payAgain(url(), bought.payment)).toMatchObject({ status: 402 });
    expect(await balanceOf(harness, account.address)).toBe(4n * price);
  });
});

describe("while the settle is still waiting", () => {
  beforeAll(() => base.hold());

  describe.each(["v1", "v2"])("%s", (version) => {
    const url = () => `${merchants[version]?.origin}/report`;

    // From before anything is signed to long after the transaction was sent.
    test.each(repetitions.map((index) => Math.round((index * 80) / count)))(
      "a reset after %i ms",
      async (delay) => {
        const account = await whileMining(base, fundedAccount(base, 5n * price));
        const answers: number[] = [];
        hooks = onNextSettle({
          onRequest: (request) => setTimeout(() => request.reset(), delay),
          onAnswer: (_request, status) => answers.push(status),
        });

        const lost = await createBuyer(account).buy(url());
        expect(lost).toMatchObject({ status: 402 });
        expect(answers).toEqual([]);
        expect(await whileMining(base, payAgain(url(), lost.payment))).toMatchObject({
          status: 200,
          body: goods,
          receipt: { success: true, payer: account.address },
        });
        expect(await payAgain(url(), lost.payment)).toMatchObject({ status: 402 });
        expect(await balanceOf(harness, account.address)).toBe(4n * price);
      },
    );
  });
});
