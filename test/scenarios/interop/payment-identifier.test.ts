import { ExactEvmScheme } from "@x402/evm/exact/client";
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
  generatePaymentId,
  PAYMENT_IDENTIFIER,
} from "@x402/extensions/payment-identifier";
import { x402Client, x402HTTPClient } from "@x402/fetch";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { fundedAccount } from "../../support/buyer.ts";
import { type Offer, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";

/*
 * A shop of the unmodified @x402/express that has successes repeated to the identifiers of payments, and a buyer who wants
 * everything that it sells for the price of one.
 */

const paths = Array.from({ length: 20 }, (_, index) => `/reports/${index}`);

let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
});
afterAll(() => harness.close());

/** A shop that sells all paths for the same price; `idempotencyKey` is what it sends for one of them. */
function startShop(idempotencyKey: (path: string) => string) {
  const payTo = runningChain(harness, "base").facilitatorContract;
  const offer: Offer = { network: networks.base.caip2, payTo, price: "$0.001" };
  const { url } = harness.description.facilitator;
  return startMerchant(
    { url, apiKey: localOrganization.apiKey },
    Object.fromEntries(paths.map((path) => [path, offer])),
    (path) => ({ "Idempotency-Key": idempotencyKey(path) }),
  );
}

/** A buyer who signs once, with an identifier, and sends that for whatever URL it likes to whatever path it likes. */
async function createCheat(url: string) {
  const account = await fundedAccount(runningChain(harness, "base"), 5_000n);
  const client = new x402HTTPClient(new x402Client().register("eip155:*", new ExactEvmScheme(account)));
  const challenge = await fetch(url);
  const required = client.getPaymentRequiredResponse((name) => challenge.headers.get(name));
  const signed = await client.createPaymentPayload(required);
  const declared = { [PAYMENT_IDENTIFIER]: declarePaymentIdentifierExtension() };
  const extensions = appendPaymentIdentifierToExtensions(declared, generatePaymentId());
  return (at: string, written: string) => {
    const payment = { ...signed, extensions, resource: { ...required.resource, url: written } };
    return fetch(at, { headers: client.encodePaymentSignatureHeader(payment) });
  };
}

test.each([
  {
    shop: "names what it sells",
    key: (path: string) => `${PAYMENT_IDENTIFIER}; resource="${path}"`,
    again: 200,
  },
  { shop: "does not name what it sells", key: () => PAYMENT_IDENTIFIER, again: 402 },
])(
  "one payment buys one thing of twenty where the shop $shop, whatever URL the buyer writes",
  async (row) => {
    const shop = await startShop(row.key);
    const urls = paths.map((path) => `${shop.origin}${path}`);
    const [first = ""] = urls;
    const send = await createCheat(first);
    const before = await balanceOf(harness, localOrganization.recipient);
    const served = new Set<string>();
    for (const url of urls) {
      for (const written of [first, url]) {
        if ((await send(url, written)).status === 200) served.add(url);
      }
    }
    expect([...served]).toEqual([first]);
    expect(await balanceOf(harness, localOrganization.recipient)).toBe(before + 1_000n);
    expect((await send(first, first)).status).toBe(row.again);
    await shop.close();
  },
);
