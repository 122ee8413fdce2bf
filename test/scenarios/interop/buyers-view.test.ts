import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { createBuyer } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";
import { testPayerAccount } from "../../support/test-payer-account.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * A payer's state as a buyer with the public client sees it, through a public server (v2) and one that does as the
 * v1 servers did.
 */

let harness: RunningHarness;
const merchants: Record<string, LoopbackServer> = {};
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  const { network, facilitatorContract: payTo, asset } = runningChain(harness, "base");
  const { url } = harness.description.facilitator;
  for (const [keyName, apiKey] of Object.entries({
    "the right key": localOrganization.apiKey,
    "a wrong key": "x4k_local_00000000000000000000000000000000",
  })) {
    merchants[`v2 with ${keyName}`] = await startMerchant(
      { url, apiKey },
      { "/report": { network: network.caip2, payTo, price: "$0.01" } },
    );
    const extra = { name: asset.name, version: asset.version };
    merchants[`v1 with ${keyName}`] = await startV1Merchant(
      { url, apiKey },
      { "/report": { network: "base", payTo, asset: asset.address, maxAmountRequired: "10000", extra } },
    );
  }
});
afterAll(async () => {
  await Promise.all(Object.values(merchants).map((merchant) => merchant.close()));
  await harness?.close();
});

const report = (version: "v1" | "v2", key: "the right key" | "a wrong key") =>
  `${merchants[`${version} with ${key}`]?.origin}/report`;

const payerNames = Object.keys(testPayers) as TestPayerName[];
const outcomesOf = (name: TestPayerName) => {
  const { outcome, settleOutcome = outcome }: TestPayer = testPayers[name];
  return { outcome, settleOutcome };
};
const versions = ["v1", "v2"] as const;

describe.each(versions)("%s: what a payment gets", (version) => {
  test.each(payerNames.filter((payer) => outcomesOf(payer).settleOutcome === "success"))(
    "of the payer %s: the goods, for exactly the price",
    async (payer) => {
      const { address } = testPayers[payer];
      const ownedBefore = await balanceOf(harness, address);
      const paidBefore = await balanceOf(harness, localOrganization.recipient);
      const purchase = await createBuyer(testPayerAccount(payer)).buy(report(version, "the right key"));
      expect(purchase).toMatchObject({
        status: 200,
        body: goods,
        receipt: { success: true, payer: address },
      });
      expect(await balanceOf(harness, address)).toBe(ownedBefore - 10_000n);
      expect(await balanceOf(harness, localOrganization.recipient)).toBe(paidBefore + 10_000n);
    },
  );

  test.each(payerNames.filter((payer) => outcomesOf(payer).settleOutcome !== outcomesOf(payer).outcome))(
    "of the payer %s, who is valid until the transaction is mined: 402, and nothing is taken",
    async (payer) => {
      const { address } = testPayers[payer];
      const ownedBefore = await balanceOf(harness, address);
      const purchase = await createBuyer(testPayerAccount(payer)).buy(report(version, "the right key"));
      expect(purchase).toMatchObject({ status: 402 });
      expect(purchase.body).not.toEqual(goods);
      expect(purchase.receipt?.success).not.toBe(true);
      expect(await balanceOf(harness, address)).toBe(ownedBefore);
    },
  );

  test.each(payerNames.filter((payer) => testPayers[payer].outcome !== "success"))(
    "of the payer %s: 402 with the reason, and nothing is taken",
    async (payer) => {
      const { address, outcome } = testPayers[payer];
      const ownedBefore = await balanceOf(harness, address);
      const purchase = await createBuyer(testPayerAccount(payer)).buy(report(version, "the right key"));
      expect(purchase).toMatchObject({ status: 402, refusal: outcome, receipt: undefined });
      expect(await balanceOf(harness, address)).toBe(ownedBefore);
    },
  );

  test("at a merchant whose API key is wrong: 402 that puts the blame on the service, and nothing is taken", async () => {
    const { address } = testPayers.funded;
    const ownedBefore = await balanceOf(harness, address);
    const purchase = await createBuyer(testPayerAccount("funded")).buy(report(version, "a wrong key"));
    expect(purchase).toMatchObject({ status: 402, receipt: undefined });
    expect(purchase.refusal).toContain("unexpected_verify_error");
    expect(await balanceOf(harness, address)).toBe(ownedBefore);
  });
});
