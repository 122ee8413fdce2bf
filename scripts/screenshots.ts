/**
 * Takes the README's screenshot of the studio from a real run, with payments that settle, are refused and meet a fault.
 *
 *   npm run screenshots
 */
import { mkdirSync, statSync } from "node:fs";
import { pay } from "../src/harness/control/pay.ts";
import { startBrowser } from "../test/support/browser.ts";
import { post, signedRequest, startTestHarness } from "../test/support/service.ts";

const folder = new URL("../docs/images/", import.meta.url);
const mostBytes = 300_000;

const harness = await startTestHarness({ networks: ["base", "polygon"], studio: true });
const browser = await startBrowser();
try {
  const { description } = harness;
  const origin = description.facilitator.url.replace(/\/v1$/, "");
  for (const payer of ["funded", "smartWallet", "delegated", "empty", "blacklisted", "funded"] as const) {
    await pay(description, { network: "base", payer });
    await pay(description, { network: "polygon", payer, x402Version: 2, amount: 2_500_000n });
  }
  await harness.faults.add({ network: "base", kind: "delay", ms: 200 });
  await pay(description, { network: "base" });
  await harness.faults.clear();
  await post(harness, "verify", await signedRequest(harness, { validBefore: -5 }));
  await pay(description, { network: "base", payer: "empty", amount: 1_450_000n });

  mkdirSync(folder, { recursive: true });
  const page = await browser.newPage({ colorScheme: "light", viewport: { width: 1_440, height: 900 } });
  await page.goto(`${origin}/studio`);
  await page.waitForSelector("tr.row");
  await page.locator("tr.row").first().click();
  await page.getByRole("button", { name: "Fund 1.45 USDC and pay again" }).waitFor();
  const path = new URL("studio-light.png", folder).pathname;
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > mostBytes) throw new Error(`${path} has ${size} bytes; ${mostBytes} are the most`);
  console.log(`${path}: ${size} bytes`);
} finally {
  await browser.close();
  await harness.close();
}
