import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { createBuyer, fundedAccount } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, startTestHarness } from "../../support/service.ts";
import { startV1Merchant } from "../../support/v1-merchant.ts";

/*
 * Public clients date their payments by the clock: v1 from ten minutes ago to a minute from now. A chain whose time
 * stood still while it is not used would refuse them.
 */

const hour = 3_600;

let harness: RunningHarness;
const merchants: Record<string, LoopbackServer> = {};
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  const access = { url: harness.description.facilitator.url, apiKey: localOrganization.apiKey };
  const { network, facilitatorContract: payTo, asset } = runningChain(harness, "base");
  merchants.v2 = await startMerchant(access, {
    "/report": { network: network.caip2, payTo, price: "$0.01" },
  });
  const extra = { name: asset.name, version: asset.version };
  merchants.v1 = await startV1Merchant(access, {
    "/report": { network: "base", payTo, asset: asset.address, maxAmountRequired: "10000", extra },
  });
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(async () => {
  await Promise.all(Object.values(merchants).map((merchant) => merchant.close()));
  await harness?.close();
});

const clock = () => Math.floor(Date.now() / 1_000);

test("an idle chain's time goes on with the clock", async () => {
  const base = runningChain(harness, "base");
  const then = clock() + 2;
  await vi.waitFor(async () => expect(Number(await base.now())).toBeGreaterThanOrEqual(then), {
    timeout: 20_000,
    interval: 100,
  });
  // Nor does it run ahead of it, which would make payments expire on arrival.
  expect(Number(await base.now())).toBeLessThanOrEqual(clock() + 10);
});

test("after an hour, payments of unmodified clients of both versions go through; the next hour too", async () => {
  const base = runningChain(harness, "base");
  for (const hours of [1, 2]) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hour * 1_000 });
    await base.advanceTime(hour);
    for (const version of ["v1", "v2"]) {
      const account = await fundedAccount(base, 50_000n);
      const purchase = await createBuyer(account).buy(`${merchants[version]?.origin}/report`);
      expect(purchase, `${version} after ${hours} h`).toMatchObject({ status: 200, body: goods });
      expect(await balanceOf(harness, account.address)).toBe(40_000n);
    }
  }
});
