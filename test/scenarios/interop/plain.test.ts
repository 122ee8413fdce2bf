import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import {
  type HarnessDescription,
  harnessDescriptionSchema,
} from "../../../src/harness/control/description.ts";
import { orderSchema } from "../../../src/payer/payment-order.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { addressWord } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { createBuyer } from "../../support/buyer.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runHere } from "../../support/run-here.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * `up --plain` in the place of a public facilitator: a shop of the unmodified public packages is given its URL, and nothing
 * else. It names its own wallet as payTo and knows no key.
 */

const names = ["base", "optimism"] as const;
const merchant = privateKeyToAccount(generatePrivateKey()).address;

let up: CliProcess;
let description: HarnessDescription;
let shop: LoopbackServer;
let shopV1: LoopbackServer;
beforeAll(async () => {
  up = await startCli(["up", "--plain", "--port", "0", "--json", "--no-demo", "--networks", names.join()]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  // As those of public facilitators, without a version.
  const url = new URL(description.facilitator.url).origin;
  const { address, name, version } = networks.optimism.usdc;
  shop = await startMerchant(
    { url },
    {
      "/base": { network: "eip155:8453", payTo: merchant, price: "$0.001" },
      "/optimism": {
        network: "eip155:10",
        payTo: merchant,
        price: { asset: address, amount: "1000", extra: { name, version } },
      },
    },
  );
  const { usdc } = networks.base;
  const terms = { asset: usdc.address, extra: { name: usdc.name, version: usdc.version } };
  shopV1 = await startV1Merchant(
    { url },
    { "/base": { network: "base", payTo: merchant, maxAmountRequired: "1000", ...terms } },
  );
});
afterAll(async () => {
  await shop?.close();
  await shopV1?.close();
  await up?.[Symbol.asyncDispose]();
});

async function balanceOf(network: (typeof names)[number]): Promise<bigint> {
  const { rpcUrl, asset } = description.networks[network] ?? {};
  const call = { to: asset?.address, data: `0x70a08231${addressWord(merchant)}` };
  return BigInt(String(await createLocalRpc(rpcUrl ?? "").request("eth_call", call, "latest")));
}

const buyer = createBuyer(privateKeyToAccount(testPayers.funded.privateKey), {
  allowedAssets: [
    { network: "eip155:8453", asset: networks.base.usdc.address },
    { network: "eip155:10", asset: networks.optimism.usdc.address },
  ],
});

test.each(names)("a shop of the public packages is paid at its own wallet on %s", async (network) => {
  const before = await balanceOf(network);
  const purchase = await buyer.buy(`${shop.origin}/${network}`);
  expect(purchase).toMatchObject({
    status: 200,
    body: goods,
    receipt: {
      success: true,
      network: networks[network].caip2,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    },
  });
  expect((await balanceOf(network)) - before).toBe(1_000n);
  const { rpcUrl, asset } = description.networks[network] ?? {};
  const receipt = await createLocalRpc(rpcUrl ?? "").request(
    "eth_getTransactionReceipt",
    purchase.receipt?.transaction,
  );
  // As public facilitators settle.
  expect(receipt).toMatchObject({ status: "0x1", to: asset?.address.toLowerCase() });
});

test("and a shop of version 1", async () => {
  const before = await balanceOf("base");
  const purchase = await buyer.buy(`${shopV1.origin}/base`);
  expect(purchase).toMatchObject({ status: 200, body: goods, receipt: { success: true, network: "base" } });
  expect((await balanceOf("base")) - before).toBe(1_000n);
});

test("a payment that was settled is not taken twice", async () => {
  const before = await balanceOf("base");
  const { payment } = await buyer.buy(`${shop.origin}/base`);
  const again = await fetch(`${shop.origin}/base`, { headers: { [payment.name]: payment.value } });
  expect(again.status).toBe(402);
  expect((await balanceOf("base")) - before).toBe(1_000n);
});

test("what it is, and what it takes, is told where it is asked for", async () => {
  const { origin } = new URL(description.facilitator.url);
  const supported: unknown = await (await fetch(`${origin}/supported`)).json();
  expect(Reflect.get(Object(supported), "kinds")).toContainEqual({
    ...{ x402Version: 2, scheme: "exact", network: "eip155:10" },
    extra: { payTo: "any", strictness: "reference", reasons: "reference" },
  });
  expect(description).toMatchObject({
    payToPolicy: "any",
    networks: { base: { payTo: description.organization.recipient } },
  });
});

test.each([
  ["", 200],
  ["Bearer", 200],
  ["bearer  ", 200],
  ["Bearer undefined", 401],
  ["x4k_of_another", 401],
])("of a shop whose Authorization header is %j, verify answers %i", async (authorization, expected) => {
  const { status } = await requestJson(`${description.facilitator.url}/verify`, {
    ...{ method: "POST", headers: { authorization }, body: {} },
  });
  expect(status).toBe(expected);
});

test("pay goes straight to the organization, or to where it is told", async () => {
  const { origin } = new URL(description.facilitator.url);
  const before = await balanceOf("base");
  const own = await runHere(["pay", "--network", "base", "--url", origin]);
  expect(own.stdout).toContain("Settled 0.01 USDC on base");
  expect(await balanceOf("base")).toBe(before);
  await runHere(["pay", "--network", "base", "--pay-to", merchant, "--url", origin]);
  expect((await balanceOf("base")) - before).toBe(10_000n);
});

test("explain finds a wallet as payTo wrong where a facilitator does not let payments go there, and here not", async () => {
  const { origin } = new URL(description.facilitator.url);
  const offer = (await fetch(`${shop.origin}/base`)).headers.get("payment-required");
  const mistakes = async (...args: string[]) =>
    (await runHere(["explain", offer ?? "", "--json", ...args])).stdout;
  expect(await mistakes()).toContain("pay-to-not-accepted");
  expect(await mistakes("--url", origin)).not.toContain("pay-to-not-accepted");
});

test("explain judges as strictly as the service that it asks", async () => {
  const { origin } = new URL(description.facilitator.url);
  const order = orderSchema.parse({ amount: "0.001", payTo: merchant, validForSeconds: 40 * 24 * 3_600 });
  const { body } = (await requestJson(`${origin}/__payment`, { method: "POST", body: order })).body as {
    body: { paymentPayload: { payload: { authorization: { from: string } } } };
  };
  const judge = async (...args: string[]) => {
    const { stdout } = await runHere(["explain", JSON.stringify(body), "--pay-to", "any", "--json", ...args]);
    return (JSON.parse(stdout).findings as { at: string }[]).map(({ at }) => at);
  };
  const verify = async () => (await requestJson(`${origin}/verify`, { method: "POST", body })).body;
  // Only the specification's facilitator takes no payment that is good for longer than a month.
  expect(await judge()).toEqual(["authorization.validBefore"]);
  expect(await judge("--url", origin)).toEqual([]);
  expect(await verify()).toMatchObject({ isValid: true });
  // Only the reference facilitator looks at checksums.
  const { authorization } = body.paymentPayload.payload;
  authorization.from = `0x${authorization.from.slice(2).toUpperCase()}`;
  expect(await judge("--url", origin)).toContain("authorization.from");
  expect(await verify()).toMatchObject({ isValid: false });
});

test("conformance knows where it lets payments go, and passes", async () => {
  const { origin } = new URL(description.facilitator.url);
  const args = [
    "conformance",
    "--url",
    origin,
    "--network",
    "base",
    "--parallel",
    "16",
    "--cases",
    "success,insufficient_funds,payload_signature",
  ];
  const { code, stdout } = await runHere(args);
  expect(stdout).toMatch(/^success +\d+ +0 /m);
  expect(code).toBe(0);
}, 60_000);

test.each([
  [
    ["--plain", "--pay-to", "contract"],
    "--plain: is --open with --pay-to any, and not with --pay-to contract",
  ],
  [
    ["--plain", "--host", "0.0.0.0"],
    "--plain: takes requests without a key, so it listens on this machine alone",
  ],
  [["--pay-to", "me"], '--pay-to: "me" is not one of contract, recipients, any'],
])("up %j is refused", async (args, problem) => {
  const { code, stderr } = await runHere(["up", "--port", "0", ...args]);
  expect(code).toBe(2);
  expect(stderr).toContain(problem);
});
