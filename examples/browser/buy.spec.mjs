import { once } from "node:events";
import { createServer } from "node:http";
import { test as base, expect } from "@playwright/test";
import { leaseHarness } from "x402-facilitator-kit/pool";
import { createShop } from "./shop.mjs";

const test = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads from it which other fixtures are needed.
  harness: async ({}, use) => {
    const harness = await leaseHarness(["base"]);
    await use(harness);
    await harness.close();
  },
  /** Opens the page of the buyer. */
  open: async ({ harness, page, baseURL }, use) => {
    const shop = createServer(createShop(harness.shopConfig("base", "0.01"), baseURL));
    await once(shop.listen(0, "127.0.0.1"), "listening");
    await use(async (payer) => {
      const wallet = harness.wallet({ payer });
      await page.exposeFunction(wallet.binding, wallet.request);
      await page.addInitScript(wallet.script);
      const { caip2, asset } = harness.networks.base;
      const url = `http://127.0.0.1:${shop.address().port}/report`;
      await page.goto(`/?${new URLSearchParams({ shop: url, network: caip2, asset: asset.address })}`);
      await page.getByRole("button").click();
    });
    shop.close();
  },
});

test("a page buys", async ({ harness, open, page }) => {
  await open("funded");
  await expect(page.locator("output")).toHaveText('200 {"report":"all is well"}');
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(10_000n);
});

test("a page whose account is empty gets nothing", async ({ harness, open, page }) => {
  await open("empty");
  await expect(page.locator("output")).toContainText("402");
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(0n);
});
