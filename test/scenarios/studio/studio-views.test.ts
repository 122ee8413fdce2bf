import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { pay } from "../../../src/harness/control/pay.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
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

/** A part of a shop's configuration that the page shows. */
const part = (name: string) => shown.page.locator(`section[aria-label="${name}"] pre`).textContent();
/** A file of a template, as `init` writes it beside the others. */
const template = async (path: string) =>
  (await readFile(join(repository, "templates", path), "utf8")).replace("../server/", "./").trimEnd();

test("the page and all that it loads are at most 60 kB, gzipped", async () => {
  const load = async (path: string) => {
    const response = await fetch(new URL(path, studio.origin));
    expect(`${path} ${response.status}`).toBe(`${path} 200`);
    return response.text();
  };
  const html = await load("/studio");
  const names = [...html.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g)].map(([, name = ""]) => name);
  expect(names.map((name) => name.split(".").at(-1)).toSorted()).toEqual(["css", "js"]);
  const texts = [html, ...(await Promise.all(names.map(load)))];
  expect(texts.reduce((sum, text) => sum + gzipSync(text).length, 0)).toBeLessThan(60_000);
});

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
    await expect.poll(() => page.getByLabel("Search payments").inputValue(), soon).toBe("USDC");
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
    await page.getByText(`npx --no-install x402-kit pay --url ${studio.origin}`).waitFor();
    await page.getByText("Waiting for a shop to connect").waitFor();
    await fetch(`${studio.origin}/v1/supported`);
    await page.getByText(/A shop connected (now|\d+ s ago)/).waitFor();
    await button("hono").click();
    await expect.poll(() => part("commands"), soon).toContain("@x402/hono");
    await button("Pay as empty, which is refused").click();
    await said("Not settled: insufficient_funds.");
    await page.waitForSelector("article");
    await expect.poll(() => rows().count(), soon).toBe(1);
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
});

describe("what is there to copy", { timeout: 60_000 }, () => {
  test("keys, addresses and a shop's configuration", async () => {
    const { page } = shown;
    await shown.open("Setup");
    const { organization, networks } = studio.harness.description;
    const text = () => page.locator("main").textContent();
    await expect.poll(text, soon).toContain(organization.apiKey);
    for (const framework of ["hono", "express"] as const) {
      await button(framework).click();
      // The files that `x402-kit init` writes, which test/scenarios/package/init.test.ts runs.
      await expect.poll(() => part("shop.js"), soon).toBe(await template(`${framework}/shop.js`));
      await expect.poll(() => part("commands"), soon).toContain("npm pkg set type=module\nnpm install ");
      await expect.poll(() => part("commands"), soon).toContain(`@x402/${framework}`);
    }
    await expect.poll(() => part("buyer.js"), soon).toBe(await template("common/buyer.js"));
    expect(parseEnv((await part(".env")) ?? "")).toEqual({
      X402_FACILITATOR_URL: studio.harness.description.facilitator.url,
      X402_API_KEY: organization.apiKey,
      X402_NETWORK: "base",
      X402_CAIP2: "eip155:8453",
      X402_PAY_TO: networks.base?.facilitatorContract,
      X402_ASSET: networks.base?.asset.address,
      X402_PRIVATE_KEY: testPayers.funded.privateKey,
    });
    await button("next").click();
    await expect
      .poll(() => part("app/report/route.js"), soon)
      .toBe(await template("next/app/report/route.js"));
    expect(await text()).toContain("runs unchanged on x402-kit up --plain");
  });

  test("where payments may go straight to a wallet, a shop's configuration names it", async () => {
    const { page } = shown;
    await using straight = await startTestHarness({ networks: ["base"], studio: true, payTo: "any" });
    const { facilitator, organization } = straight.description;
    await page.goto(`${new URL(facilitator.url).origin}/studio/setup`);
    await expect.poll(() => part(".env"), soon).toContain(`X402_PAY_TO=${organization.recipient}\n`);
    await expect.poll(() => page.locator("main").textContent(), soon).toContain("as by public facilitators");
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
