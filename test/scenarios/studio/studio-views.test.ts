import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pay } from "../../../src/harness/control/pay.ts";
import { repository } from "../../support/cli.ts";
import { startTestHarness } from "../../support/service.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/*
 * The views of the studio in a real Chromium: their URLs, the guide that stands in the place of an empty list, and what is
 * there to copy.
 */

const studio = useStudio();
const shown = useStudioPage(studio);
const { rows, button, said } = shown;
const { payAs, list } = studio;

describe("URLs", { timeout: 60_000 }, () => {
  const path = () => shown.page.url().slice(studio.origin.length);

  test("each view and each payment has one, and Back leads back", async () => {
    const { page } = shown;
    await payAs("funded");
    const id = (await list())[0]?.id;
    await rows().first().click();
    expect(path()).toBe(`/studio/payments/${id}`);
    for (const view of ["Chains", "Faults", "Setup"] as const) {
      await shown.open(view);
      expect(path()).toBe(`/studio/${view.toLowerCase()}`);
      await page.waitForSelector(".card");
    }
    await page.goBack();
    await page.goBack();
    await page.getByRole("heading", { name: "Chains" }).waitFor();
    await page.goBack();
    await page.waitForSelector("article");
    await page.goBack();
    await expect.poll(() => page.locator("article").count(), soon).toBe(0);
    expect(path()).toBe("/studio");
    await page.goForward();
    await page.waitForSelector("article");
    await page.reload();
    await page.waitForSelector("article");
  });

  test("the filters are in it, and are there again when it is opened", async () => {
    const { page } = shown;
    await payAs("funded");
    await payAs("empty");
    await page.getByRole("button", { name: /^Refused 1$/ }).click();
    await page.getByLabel("Search payments").fill("USDC");
    await expect.poll(path, soon).toBe("/studio?q=USDC&status=refused");
    await page.goto("about:blank");
    await page.goto(`${studio.origin}/studio?q=USDC&status=refused`);
    await expect.poll(() => rows().count(), soon).toBe(1);
    await rows().first().click();
    await page.waitForSelector("article");
    await page.goBack();
    await expect.poll(path, soon).toBe("/studio?q=USDC&status=refused");
    expect(await page.getByLabel("Search payments").inputValue()).toBe("USDC");
  });

  test("a link of an older form, with the id behind #, leads to the payment", async () => {
    const { page } = shown;
    await payAs("funded");
    const id = (await list())[0]?.id;
    await page.goto("about:blank");
    await page.goto(`${studio.origin}/studio#${id}`);
    await page.waitForSelector("article");
    expect(path()).toBe(`/studio/payments/${id}`);
  });

  test("the title counts refusals", async () => {
    const { page } = shown;
    expect(await page.title()).toBe("x402 studio");
    await payAs("funded");
    await payAs("empty");
    await payAs("blacklisted");
    await expect.poll(() => page.title(), soon).toBe("(2 refused) x402 studio");
  });
});

describe("the guide", { timeout: 60_000 }, () => {
  test("an empty list is one: it pays, shows a shop's configuration, and says when a shop has connected", async () => {
    const { page } = shown;
    await page.getByRole("heading", { name: "No payments yet" }).waitFor();
    await page.getByText(`npx x402-kit pay --url ${studio.origin}`).waitFor();
    await page.getByText("Waiting for a shop to connect").waitFor();
    await fetch(`${studio.origin}/v1/supported`);
    await page.getByText(/A shop has connected (now|\d+ s ago)/).waitFor();
    await button("hono").click();
    expect(await page.locator("pre").textContent()).toContain("@x402/hono");
    await button("Pay as empty, which is refused").click();
    await said("Not settled: insufficient_funds.");
    await page.waitForSelector("article");
    expect(await rows().count()).toBe(1);
  });

  test("it stands below the first payments, such as those that `up` makes, until a shop connects", async () => {
    const { page } = shown;
    // Another page: of this studio a shop has connected already.
    await using fresh = await startTestHarness({ networks: ["base"], studio: true });
    const { facilitator } = fresh.description;
    await pay(fresh.description, { network: "base" });
    await page.goto(`${new URL(facilitator.url).origin}/studio`);
    await rows().first().waitFor();
    await page.getByText("Waiting for a shop to connect").waitFor();
    await fetch(`${facilitator.url}/supported`);
    await said("A shop has connected.");
    await expect.poll(() => page.locator(".guide").count(), soon).toBe(0);
    // Before its service ends.
    await page.goto("about:blank");
  });

  test("the configuration of an express shop runs as it is pasted, and asks to be paid", async () => {
    const { page } = shown;
    const shop = (await page.locator("pre").textContent()) ?? "";
    expect(shop).toContain("app.listen(3000);");
    // Where the packages are found that it is told to install.
    const cache = join(repository, "node_modules/.cache");
    await mkdir(cache, { recursive: true });
    const folder = await mkdtemp(join(cache, "pasted-shop-"));
    const file = join(folder, "shop.mjs");
    // Another port than one of a person's shop.
    const listening = 'const at = app.listen(0, "127.0.0.1", () => console.log(at.address().port));';
    await writeFile(file, shop.replace("app.listen(3000);", listening));
    const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const [port] = await once(child.stdout, "data");
      const response = await fetch(`http://127.0.0.1:${String(port).trim()}/report`);
      expect(response.status).toBe(402);
      const offer = JSON.parse(atob(response.headers.get("payment-required") ?? "")).accepts[0];
      expect(offer).toMatchObject({
        ...{ scheme: "exact", network: "eip155:8453", amount: "10000" },
        payTo: studio.harness.description.networks.base?.payTo,
      });
      await page.getByText("A shop has connected").waitFor();
    } finally {
      child.kill();
      await once(child, "close");
      await rm(folder, { recursive: true });
    }
  });
});

describe("what is there to copy", { timeout: 60_000 }, () => {
  test("keys, addresses and a shop's configuration", async () => {
    const { page } = shown;
    await shown.open("Setup");
    const { organization, networks } = studio.harness.description;
    const text = () => page.locator("main").textContent();
    await expect.poll(text, soon).toContain(organization.apiKey);
    await button("hono").click();
    const shop = await page.locator("pre").textContent();
    expect(shop).toContain("@x402/hono");
    expect(shop).toContain(`payTo: "${networks.base?.facilitatorContract}"`);
    await button("next").click();
    await expect.poll(() => page.locator("pre").textContent(), soon).toContain("// proxy.ts");
    expect(await text()).toContain("runs unchanged on x402-kit up --plain");
  });

  test("where payments may go straight to a wallet, a shop's configuration names it", async () => {
    const { page } = shown;
    await using straight = await startTestHarness({ networks: ["base"], studio: true, payTo: "any" });
    const { facilitator, organization } = straight.description;
    await page.goto(`${new URL(facilitator.url).origin}/studio/setup`);
    const shop = () => page.locator("pre").textContent();
    await expect.poll(shop, soon).toContain(`payTo: "${organization.recipient}"`);
    expect(await page.locator("main").textContent()).toContain("as by public facilitators");
    // Before its service ends.
    await page.goto("about:blank");
  });

  test("the page about the API knows the local key, and sends a payment that is valid", async () => {
    const { page } = shown;
    await page.goto(`${studio.origin}/docs/`);
    await page
      .getByRole("button", { name: /Test Request/ })
      .first()
      .click();
    const answered = page.waitForResponse("**/v1/verify");
    await page.getByRole("button", { name: /Send/ }).first().click();
    const answer = await answered;
    const { apiKey } = studio.harness.description.organization;
    expect((await answer.request().allHeaders()).authorization).toBe(apiKey);
    expect(await answer.json()).toMatchObject({ isValid: true });
  });
});
