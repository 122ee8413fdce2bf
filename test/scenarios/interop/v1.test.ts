import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { signAuthorization } from "../../../src/methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networkNames } from "../../../src/protocol/networks.ts";
import { createBuyer, fundedAccount } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, post, startTestHarness } from "../../support/service.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * Protocol v1: the unmodified public client where it knows the network, hand-signed payments on all five.
 */

/** The networks of ours that the public v1 client knows. */
const knownToPublicClient = ["base", "base-sepolia", "polygon"] as const;

let harness: RunningHarness;
let merchant: LoopbackServer;

beforeAll(async () => {
  harness = await startTestHarness({ networks: networkNames });
  const offers = knownToPublicClient.map((network) => {
    const { asset, facilitatorContract } = runningChain(harness, network);
    const extra = { name: asset.name, version: asset.version };
    const terms = {
      network,
      payTo: facilitatorContract,
      asset: asset.address,
      maxAmountRequired: "1500",
      extra,
    };
    return [`/${network}`, terms] as const;
  });
  const { url } = harness.description.facilitator;
  merchant = await startV1Merchant({ url, apiKey: localOrganization.apiKey }, Object.fromEntries(offers));
});
afterAll(async () => {
  await merchant?.close();
  await harness?.close();
});

describe("a paid request with the public v1 client scheme", () => {
  test.each(knownToPublicClient)("on %s", async (network) => {
    const chain = runningChain(harness, network);
    const account = await fundedAccount(chain, 5_000n);
    const paidBefore = await balanceOf(harness, localOrganization.recipient, network);

    const purchase = await createBuyer(account).buy(`${merchant.origin}/${network}`);

    expect(purchase).toMatchObject({
      status: 200,
      body: goods,
      payment: { name: "X-PAYMENT" },
      receipt: {
        success: true,
        network,
        payer: account.address,
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      },
    });
    expect(await balanceOf(harness, localOrganization.recipient, network)).toBe(paidBefore + 1_500n);
    expect(await balanceOf(harness, account.address, network)).toBe(3_500n);
  });
});

describe("a hand-signed v1 payment", () => {
  test.each(networkNames)("is verified and settles on %s", async (network) => {
    const chain = runningChain(harness, network);
    const { asset, facilitatorContract: payTo } = chain;
    const { authorization, signature } = await signAuthorization(
      createPayerSigner(testPayers.funded.privateKey),
      {
        asset,
        chainId: chain.network.chainId,
        to: payTo,
        value: 777n,
        validBefore: (await chain.now()) + 60n,
      },
    );
    const body = buildPaymentRequest({
      x402Version: 1,
      network: chain.network,
      asset,
      payTo,
      amount: 777n,
      resource: "https://merchant.example/report",
      authorization,
      signature,
    });
    const payer = testPayers.funded.address;
    const paidBefore = await balanceOf(harness, localOrganization.recipient, network);
    const ownedBefore = await balanceOf(harness, payer, network);

    const verify = await post(harness, "verify", body);
    expect(verify).toMatchObject({
      status: 200,
      body: { isValid: true, payer, authContext: { authMethod: "organization_specific" } },
    });
    const settle = await post(harness, "settle", body);
    expect(settle).toMatchObject({ status: 200, body: { success: true, network, payer } });

    expect(await balanceOf(harness, localOrganization.recipient, network)).toBe(paidBefore + 777n);
    expect(await balanceOf(harness, payer, network)).toBe(ownedBefore - 777n);
  });
});
