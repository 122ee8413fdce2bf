import { test as base, expect } from "@playwright/test";
import { leaseHarness } from "x402-facilitator-kit/pool";

const test = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads from it which other fixtures are needed.
  harness: async ({}, use) => {
    const harness = await leaseHarness(["base"]);
    await use(harness);
    await harness.close();
  },
});

for (const amount of [1n, 2n]) {
  test(`is paid ${amount}`, async ({ harness }) => {
    const { settle } = await harness.pay({ network: "base", amount });
    expect(settle.body.success).toBe(true);
    expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(amount);
  });
}
