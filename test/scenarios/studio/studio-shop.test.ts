import { afterAll, expect, test } from "vitest";
import { runHere } from "../../support/run-here.ts";
import { startStubShop } from "../../support/stub-shop.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/* The page of the studio with `up --shop`: the exchange of client and shop, in a real Chromium. */

const shop = await startStubShop();
afterAll(shop.close);
const studio = useStudio(async () => ({ shop: { target: shop.origin, port: 0 } }));
const shown = useStudioPage(studio);
const { rows } = shown;

test("a payment that the shop refuses itself is one row, and its diagram has no dashed line", async () => {
  const url = `${studio.harness.description.shop?.url}/report`;
  await fetch(url);
  await expect
    .poll(() => rows().allTextContents(), soon)
    .toEqual([expect.stringMatching(/^Unpaid.*GET \/report/)]);
  const { stdout } = await runHere(["buy", url, "--url", studio.origin, "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({
    result: "refused",
    there: expect.stringMatching(
      /: no verify or settle of this payment was seen; its authorization is unused/,
    ),
  });
  // The 402 that the buyer paid for is part of the payment; the one before stays unpaid.
  await expect.poll(() => rows().count(), soon).toBe(2);
  const payment = rows().filter({ hasText: "funded" });
  await expect
    .poll(() => payment.textContent(), soon)
    .toMatch(/Refused0.01 USDC.*402 by the shop, facilitator not asked/);
  await payment.click();
  const { page } = shown;
  const steps = page.locator(".sequence .step");
  await expect
    .poll(() => steps.allTextContents(), soon)
    .toEqual([
      "Client to Shop: GET /report",
      "Shop to Client: 402 and its offers",
      "Client to Shop: GET /report with PAYMENT-SIGNATURE",
      "Shop to Client: 402",
    ]);
  expect(await page.locator(".guessed").count()).toBe(0);
  expect(await page.getByLabel("What is wrong").first().textContent()).toContain(
    "without asking the facilitator",
  );
});

test("a payment is shown whose offer cannot be turned into text", async () => {
  const url = `${studio.harness.description.shop?.url}/report`;
  const payment = { x402Version: 2, accepted: { toString: 1 }, payload: {} };
  const header = Buffer.from(JSON.stringify(payment)).toString("base64");
  await fetch(url, { headers: { "PAYMENT-SIGNATURE": header } });
  await rows().first().click();
  const exchange = shown.page.locator("article summary").getByText("GET /report: 402");
  await exchange.click();
  await expect.poll(() => shown.page.locator("article").textContent(), soon).toContain('"toString": 1');
});
