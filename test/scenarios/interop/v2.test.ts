import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { type BuiltInNetworkName, networkNames, networks } from "../../../src/protocol/networks.ts";
import { createBuyer, fundedAccount } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, type Offer, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";

/*
 * Protocol v2: the unmodified public packages at both ends, @x402/fetch and @x402/express, through our /v1.
 */

/** Networks whose USDC the public packages know, so that a price in dollars is enough. */
const knownToPublicPackages = ["base", "base-sepolia", "polygon"] as const;

let harness: RunningHarness;
let merchant: LoopbackServer;

beforeAll(async () => {
  harness = await startTestHarness({ networks: networkNames });
  const offer = (name: BuiltInNetworkName, price: Offer["price"]): Offer => ({
    network: networks[name].caip2,
    payTo: runningChain(harness, name).facilitatorContract,
    price,
  });
  const { url } = harness.description.facilitator;
  merchant = await startMerchant(
    { url, apiKey: localOrganization.apiKey },
    {
      ...Object.fromEntries(knownToPublicPackages.map((name) => [`/dollars/${name}`, offer(name, "$0.001")])),
      ...Object.fromEntries(
        networkNames.map((name) => {
          const { address, name: eip712Name, version } = runningChain(harness, name).asset;
          const extra = { name: eip712Name, version };
          return [`/explicit/${name}`, offer(name, { asset: address, amount: "1234", extra })];
        }),
      ),
    },
  );
});
afterAll(async () => {
  await merchant?.close();
  await harness?.close();
});

describe("a paid request with the public v2 client and server", () => {
  test.each([
    ...knownToPublicPackages.map((network) => ({ network, path: `/dollars/${network}`, price: 1_000n })),
    ...networkNames.map((network) => ({ network, path: `/explicit/${network}`, price: 1_234n })),
  ])("$path", async ({ network, path, price }) => {
    const chain = runningChain(harness, network);
    const account = await fundedAccount(chain, 5_000n);
    const paidBefore = await balanceOf(harness, localOrganization.recipient, network);
    const isKnown = knownToPublicPackages.some((known) => known === network);
    const buyer = isKnown
      ? createBuyer(account)
      : createBuyer(account, {
          allowedAssets: [{ network: chain.network.caip2, asset: chain.asset.address }],
        });

    const purchase = await buyer.buy(`${merchant.origin}${path}`);

    expect(purchase).toMatchObject({
      status: 200,
      body: goods,
      receipt: {
        success: true,
        network: chain.network.caip2,
        payer: account.address,
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      },
    });
    expect(await balanceOf(harness, localOrganization.recipient, network)).toBe(paidBefore + price);
    expect(await balanceOf(harness, account.address, network)).toBe(5_000n - price);
    const receipt = await chain.node.request("eth_getTransactionReceipt", purchase.receipt?.transaction);
    expect(receipt).toMatchObject({ status: "0x1", to: chain.facilitatorContract.toLowerCase() });
  });
});
