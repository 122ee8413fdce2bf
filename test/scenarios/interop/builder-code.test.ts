import { ExactEvmScheme } from "@x402/evm/exact/client";
import {
  BUILDER_CODE,
  BuilderCodeClientExtension,
  BuilderCodeFacilitatorExtension,
  declareBuilderCodeExtension,
  parseBuilderCodeSuffixFromCalldata,
} from "@x402/extensions/builder-code";
import { decodePaymentResponseHeader, x402Client, x402HTTPClient } from "@x402/fetch";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { fundedAccount } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { type Offer, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, post, startTestHarness } from "../../support/service.ts";
import { approvalFirstWay, firstWays, movingWays, signInWay } from "../../support/ways.ts";

/*
 * The extension `builder-code`: the transaction that settles a payment ends with the codes of shop, buyer and facilitator, as the
 * public facilitator writes them.
 */

let harness: RunningHarness;
let chain: HarnessChain;
let shop: LoopbackServer;

const recipient = harnessAccounts.recipient.address;

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
  const offer = (payTo: string, extensions?: Record<string, unknown>): Offer => ({
    network: networks.base.caip2,
    payTo,
    price: "$0.001",
    ...(extensions && { extensions }),
  });
  const declared = { [BUILDER_CODE]: declareBuilderCodeExtension("bc_shop", ["bc_sdk"]) };
  const { url } = harness.description.facilitator;
  shop = await startMerchant(
    { url, apiKey: localOrganization.apiKey },
    {
      "/contract": offer(chain.facilitatorContract, declared),
      "/straight": offer(recipient, declared),
      "/plain": offer(recipient),
    },
  );
});
afterAll(async () => {
  await shop?.close();
  await harness?.close();
});

async function inputOf(transaction: unknown): Promise<Hex> {
  const { input } = Object(await chain.node.request("eth_getTransactionByHash", transaction));
  return input;
}

/** A buyer of the public packages; `alter` changes the codes that it sends. */
async function createBuyer() {
  const account = await fundedAccount(chain, 5_000n);
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  client.registerExtension(new BuilderCodeClientExtension("bc_buyer"));
  const http = new x402HTTPClient(client);
  return async (path: string, alter: (info: Record<string, unknown>) => void = () => {}) => {
    const challenge = await fetch(`${shop.origin}${path}`);
    const required = http.getPaymentRequiredResponse((name) => challenge.headers.get(name));
    const payload = structuredClone(await http.createPaymentPayload(required));
    const { info } = Object(payload.extensions?.[BUILDER_CODE]);
    alter(info);
    const headers = http.encodePaymentSignatureHeader(payload);
    const response = await fetch(`${shop.origin}${path}`, { headers });
    const receipt = response.headers.get("PAYMENT-RESPONSE");
    const settled = receipt === null ? undefined : decodePaymentResponseHeader(receipt);
    return { status: response.status, settled, payload };
  };
}

test("is listed by /supported", async () => {
  const { body } = await requestJson(`${harness.description.facilitator.url}/supported`);
  expect(body).toMatchObject({ extensions: expect.arrayContaining([BUILDER_CODE]) });
});

describe("the public client and server", () => {
  // {"a": "bc_shop", "s": ["bc_buyer", "bc_sdk"]}
  const codes = "a2616167" + "62635f73686f70" + "617382" + "6862635f6275796572" + "6662635f73646b";
  const suffix = `${codes}001e02${"8021".repeat(8)}`;

  test.each(["/contract", "/straight"])("%s: the transaction ends with the codes of both", async (path) => {
    const buy = await createBuyer();
    const before = await balanceOf(harness, recipient);
    const { status, settled, payload } = await buy(path);
    expect(status).toBe(200);
    const input = await inputOf(settled?.transaction);
    expect(input.endsWith(suffix)).toBe(true);
    const context = { paymentPayload: payload, paymentRequirements: payload.accepted };
    expect(`0x${suffix}`).toBe(new BuilderCodeFacilitatorExtension().buildDataSuffix(context));
    expect(await balanceOf(harness, recipient)).toBe(before + 1_000n);
  });

  test("a buyer who alters the shop's code, or makes one up, is refused by the shop and pays nothing", async () => {
    const buy = await createBuyer();
    const before = await balanceOf(harness, recipient);
    const forged = await buy("/straight", (info) => Object.assign(info, { a: "bc_thief" }));
    const madeUp = await buy("/plain", (info) => Object.assign(info, { a: "bc_thief" }));
    expect([forged.status, madeUp.status]).toEqual([402, 402]);
    expect(await balanceOf(harness, recipient)).toBe(before);
  });
});

test.each([...movingWays, ...firstWays, approvalFirstWay])(
  "$name: payments at once share transactions by the app that they name, and each is proven",
  async (way) => {
    const apps = ["one", "two"].flatMap((app) => Array.from({ length: 4 }, () => app));
    const before = await balanceOf(harness, recipient);
    const payments = await Promise.all(
      apps.map(async (app, index) => {
        const { body, due } = await signInWay(way, { chain, value: 1_000n, x402Version: 2 });
        const info = { a: app, s: [`service_${index}`] };
        body.paymentPayload.extensions = { ...body.paymentPayload.extensions, [BUILDER_CODE]: { info } };
        return { due, body };
      }),
    );
    const answers = await Promise.all(payments.map(({ body }) => post(harness, "settle", body)));
    for (const [index, { body }] of answers.entries()) {
      expect(body).toMatchObject({ success: true });
      const { a, s } = parseBuilderCodeSuffixFromCalldata(await inputOf(body.transaction)) ?? {};
      expect(a).toBe(apps[index]);
      expect(s).toContain(`service_${index}`);
    }
    expect(await balanceOf(harness, recipient)).toBe(payments.reduce((sum, { due }) => sum + due, before));
  },
);
