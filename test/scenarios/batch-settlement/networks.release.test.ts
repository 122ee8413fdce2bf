import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { connectFacilitator, createChannelBuyer, startChannelShop } from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";

/* Scheme “batch-settlement” by the unmodified public client and shop, on every network. */

const networks = builtInNetworks.all.map(({ name }) => name);
let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks, payTo: "any", strictness: "reference", reasons: "reference" });
});
afterAll(() => harness?.close());

describe.each(networks)("%s", (network) => {
  test.each(["eip3009", "permit2"] as const)("deposits by %s", async (method) => {
    const chain = runningChain(harness, network);
    const { facilitator } = connectFacilitator(harness.description.facilitator.url);
    const shop = await startChannelShop(chain, facilitator, { method });
    onTestFinished(() => shop.close());
    const buyer = await createChannelBuyer(chain, method);
    for (let purchase = 1; purchase <= 3; purchase++) {
      expect(await buyer.buy(shop.url)).toMatchObject({ status: 200 });
    }
    expect(await shop.manager.claimAndSettle()).toMatchObject({ claims: [{ vouchers: 1 }] });
    expect(await balanceOf(harness, shop.receiver, network)).toBe(3_000n);
    expect(await shop.manager.refund()).toHaveLength(1);
    expect(await balanceOf(harness, buyer.account.address, network)).toBe(47_000n);
  });
});
