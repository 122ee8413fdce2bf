import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { pipeline } from "node:stream";
import { describe, expect, test } from "vitest";
import { findScenario } from "../../../src/fixtures/index.ts";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { parsePaymentRequest } from "../../../src/methods/methods.ts";
import { channels } from "../../../src/observe/channels/channels.ts";
import { toHex } from "../../../src/protocol/hex.ts";
import { findFaintTexts } from "../../support/contrast.ts";
import { publish } from "../../support/publish.ts";
import { post, signedRequest } from "../../support/service.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/*
 * The page of the studio in a real Chromium: what it shows of payments, to whom, at every size and by keyboard.
 */

const studio = useStudio();
const shown = useStudioPage(studio);
const { rows, button } = shown;
const { payAs, list } = studio;
const article = () => shown.page.locator("article").textContent();
const views = ["Payments", "Chains", "Faults", "Setup"] as const;

describe("payments", { timeout: 60_000 }, () => {
  test("a payment appears by itself, and is explained when it is chosen", async () => {
    const { page } = shown;
    await payAs("funded");
    await payAs("empty");
    await rows().nth(1).waitFor();
    await expect
      .poll(() => rows().nth(0).textContent(), soon)
      .toMatch(/Refused0.01 USDCempty.*insufficient_funds/s);
    await expect.poll(() => rows().nth(1).textContent(), soon).toMatch(/Settled0.01 USDCfunded/s);
    await page.keyboard.press("j");
    await page.waitForSelector("article");
    await expect.poll(article, soon).toContain("holds 0 USDC (0)");
    await rows().nth(1).click();
    await page.getByText("Answer to settle: 200").click();
    await expect.poll(article, soon).toContain('"success": true');
    const compared = page.getByRole("table", { name: "Signed and required" });
    await expect
      .poll(() => compared.getByRole("rowheader").allTextContents(), soon)
      .toEqual([...["from", "to / payTo", "value / amount", "validAfter", "validBefore", "nonce", "asset"]]);
    const [amount, after] = [compared.getByRole("row").nth(3), compared.getByRole("row").nth(4)];
    await expect.poll(() => amount.textContent(), soon).toMatch(/^value \/ amount([\d.]+ USDC \d+)\1$/);
    await expect.poll(() => after.textContent(), soon).toBe("validAfteralways 0");
    await expect.poll(() => compared.locator(".differs").count(), soon).toBe(0);
    await page.getByText("Transaction, decoded").click();
    for (const decoded of ["settle of 0x", "AuthorizationUsed", "Settled", "fee"]) {
      await expect.poll(article, soon).toContain(decoded);
    }
  });

  test.each([
    ["Settled", "funded", {}],
    ["Refused", "empty", {}],
    ["Settled", "smartWallet", { x402Version: 2 }],
  ] as const)("one status, %s, stands in list and detail of a payment of %s", async (word, payer, spec) => {
    await payAs(payer, spec);
    await rows().first().click();
    const badges = shown.page.locator(".badge");
    await expect.poll(() => badges.allTextContents(), soon).toEqual([word, word]);
    const looks = await shown.page.evaluate<string[]>(
      `[...document.querySelectorAll(".badge")].map((one) => one.className + getComputedStyle(one).color)`,
    );
    expect(looks[0]).toEqual(looks[1]);
  });

  test("a verify alone is verified, and a settled payment stays so when it is asked for again", async () => {
    const body = await signedRequest(studio.harness);
    await post(studio.harness, "verify", body);
    const status = () => rows().first().locator(".badge").textContent();
    await expect.poll(status, soon).toBe("Verified");
    await expect.poll(() => rows().first().textContent(), soon).toContain("no settle yet");
    await post(studio.harness, "settle", body);
    await expect.poll(status, soon).toBe("Settled");
    await post(studio.harness, "verify", body);
    await post(studio.harness, "settle", await signedRequest(studio.harness, { payer: "empty" }));
    await expect.poll(() => rows().nth(1).locator(".badge").textContent(), soon).toBe("Settled");
  });

  test("from 390 to 1440 px nothing scrolls into an empty page", async () => {
    for (let index = 0; index < 12; index++) await payAs("empty", { amount: BigInt(10_000 + index) });
    const [last] = await list();
    const page = await shown.browser.newPage();
    try {
      for (const width of [1_440, 1_280, 1_024, 390]) {
        await page.setViewportSize({ width, height: 700 });
        await page.goto(`${studio.origin}/studio/payments/${last?.id}`);
        await page.waitForSelector("article");
        const overflow = await page.evaluate<number>(`(() => {
          for (const box of document.querySelectorAll("html, .scroller, .views, aside")) {
            box.scrollTo(0, box.scrollHeight);
          }
          const { scrollHeight, clientHeight } = document.documentElement;
          return scrollHeight - clientHeight;
        })()`);
        expect({ width, overflow }).toEqual({ width, overflow: 0 });
      }
    } finally {
      await page.close();
    }
  });

  test("amounts have separators and one point below the other; times and hashes are short", async () => {
    const { page } = shown;
    for (const amount of [1_234_567_890n, 10_000n, 2_500_000n]) await payAs("funded", { amount });
    // Of a maximum, what was taken.
    await payAs("funded", { scheme: "upto", max: 900_000n, amount: 700_000n });
    await rows().nth(3).waitFor();
    await expect
      .poll(() => page.locator(".amount").allTextContents(), soon)
      .toEqual([...["0.7 USDC", "2.5 USDC", "0.01 USDC", "1,234.56789 USDC"]]);
    const points = await page
      .locator(".amount .fraction")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().left));
    expect(new Set(points).size).toBe(1);
    await expect.poll(() => rows().first().locator("time").textContent(), soon).toMatch(/^(now|\d+ s ago)$/);
    await rows().first().click();
    await page.waitForSelector("article");
    const { payer } = (await list())[0] ?? {};
    const code = page.locator(`.terms code[title="${payer}"]`);
    await expect.poll(() => code.textContent(), soon).toBe(`${payer?.slice(0, 6)}…${payer?.slice(-4)}`);
    const font = await page.evaluate(`getComputedStyle(document.querySelector(".terms code")).fontFamily`);
    expect(font).toContain("monospace");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await button("Copy the payer").click();
    await button("Copied the payer").waitFor(soon);
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(payer);
  });

  test("what differs between signed and required is marked", async () => {
    await payAs("funded", { authorization: { value: 9_999n } });
    await rows().first().click();
    const compared = shown.page.getByRole("table", { name: "Signed and required" });
    await expect
      .poll(() => compared.locator(".differs").allTextContents(), soon)
      .toEqual(["value / amount0.009999 USDC 99990.01 USDC 10000 differs"]);
    await shown.page.getByText("1 difference", { exact: true }).waitFor();
  });

  test("verify and settle stand apart, with bars; the checks that passed are folded", async () => {
    const { page } = shown;
    await payAs("funded");
    await rows().first().click();
    const happened = page.getByLabel("What happened");
    await expect
      .poll(() => happened.locator(".phase > summary b").allTextContents(), soon)
      .toEqual(expect.arrayContaining(["Verify", "Settle"]));
    const settle = happened.locator(".phase", { hasText: "Settle" });
    const titles = async () => (await settle.locator("li.bar-row .title").allTextContents()).join("\n");
    for (const row of ["eth_call", "claimed", "signed", "broadcast", "mined in block", "settled"]) {
      await expect.poll(titles, soon).toContain(row);
    }
    const checks = settle.getByText(/^\d+ checks passed$/);
    await expect.poll(() => page.getByText("signature holds").first().isVisible(), soon).toBe(false);
    await checks.click();
    await settle.getByText("signature holds").waitFor();
    const widths = await settle.locator(".rpc .bar").evaluateAll((all) => all.map((one) => one.offsetWidth));
    expect(Math.max(...widths)).toBeGreaterThan(2);
  });

  test("who said what stands in order: client, shop, facilitator and chain", async () => {
    await payAs("funded");
    await rows().first().click();
    const steps = () => shown.page.getByLabel("Who said what").locator("li.step").allTextContents();
    await expect
      .poll(steps, soon)
      .toEqual([
        "Client to Shop: request with the signed payment",
        "Shop to Facilitator: POST /verify",
        expect.stringMatching(/^Facilitator to Chain: \d RPC requests? · /),
        expect.stringMatching(/^Facilitator to Shop: valid · /),
        "Shop to Facilitator: POST /settle",
        expect.stringMatching(/^Facilitator to Chain: \d RPC requests? · /),
        expect.stringMatching(/^Facilitator to Chain: transaction 0x/),
        expect.stringMatching(/^Chain to Facilitator: mined in block \d+$/),
        expect.stringMatching(/^Facilitator to Shop: settled · /),
        "Shop to Client: 200 and what was paid for",
      ]);
  });

  test("the list is searched by answers, networks and amounts too", async () => {
    const { page } = shown;
    await payAs("blacklisted");
    await payAs("funded", { amount: 1_230_000n });
    await page.waitForSelector("text=2 of 2");
    for (const [text, payer] of [
      ["blacklisted by the asset", "blacklisted"],
      ["1.23 usdc", "funded"],
    ] as const) {
      await page.getByLabel("Search payments").fill(text);
      await expect.poll(() => page.locator("tr.row button.open").allTextContents(), soon).toEqual([payer]);
    }
    await page.getByLabel("Search payments").fill("base");
    await page.waitForSelector("text=2 of 2");
  });

  test("a payment that the service cannot be asked about is not said to be unknown to it", async () => {
    const { page, troubles } = shown;
    await payAs("funded");
    await rows().first().waitFor();
    const details = "**/payments/0x*";
    await page.route(details, (route) => route.fulfill({ status: 503 }));
    await rows().first().click();
    await page.locator(".toast", { hasText: "did not answer about this payment" }).waitFor();
    expect(await page.getByText("The service knows nothing of this payment").count()).toBe(0);
    expect(new Set(troubles.splice(0))).toEqual(new Set([expect.stringContaining("503")]));
    await page.unroute(details);
    // The pane says so too, and not nothing.
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.waitForSelector("article");
  });

  test("an answer that comes late does not replace a newer one", async () => {
    const { page } = shown;
    const body = await signedRequest(studio.harness);
    await post(studio.harness, "verify", body);
    const late = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let isFirst = true;
    await page.route("**/payments/0x*", async (route) => {
      if (!isFirst) return route.continue();
      isFirst = false;
      const response = await route.fetch();
      asked.resolve();
      await late.promise;
      await route.fulfill({ response });
    });
    await rows().first().click();
    await asked.promise;
    await post(studio.harness, "settle", body);
    await expect.poll(article, soon).toContain("Answer to settle: 200");
    const finished = page.waitForEvent("requestfinished");
    late.resolve();
    await finished;
    await nextFrame(page);
    expect(await article()).toContain("Answer to settle: 200");
  });

  test("where filters hide every payment, the list says so and clears them", async () => {
    const { page } = shown;
    await payAs("funded");
    await page.getByLabel("Search payments").fill("nothing of that name");
    await page.getByText("Nothing matches the search and filters; they hide 1 payment.").waitFor();
    await button("Clear the filters").click();
    await rows().first().waitFor();
    for (const view of ["Chains", "Faults", "Setup"] as const) {
      await shown.open(view);
      await page.waitForSelector(".card");
      await expect.poll(() => page.getByLabel("Search payments").count(), soon).toBe(0);
      await expect.poll(() => button("Pause").count(), soon).toBe(0);
    }
  });

  test("hostile text in every field is shown as text", async () => {
    const { page, troubles } = shown;
    const hostile = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>\u202e\u0007"'\``;
    const authorization = Object.fromEntries(
      ["from", "to", "value", "validAfter", "validBefore", "nonce"].map((name) => [name, hostile]),
    );
    const offer = {
      scheme: hostile,
      network: hostile,
      payTo: hostile,
      asset: hostile,
      maxAmountRequired: hostile,
    };
    const payload = { signature: hostile, authorization };
    await post(studio.harness, "verify", {
      paymentPayload: { x402Version: 1, scheme: hostile, network: hostile, payload },
      paymentRequirements: { ...offer, resource: hostile, description: hostile, extra: { name: hostile } },
    });
    await fetch(`${studio.origin}/v1/${encodeURIComponent(hostile)}`, { method: "POST" });
    const headers = {
      authorization: studio.harness.description.organization.apiKey,
      "content-type": "application/json",
    };
    for (const body of [hostile, JSON.stringify({ [hostile]: hostile })]) {
      await fetch(`${studio.origin}/v1/settle`, { method: "POST", headers, body });
    }
    await rows().nth(3).waitFor();
    for (let index = 0; index < 4; index++) {
      await rows().nth(index).click();
      await expect.poll(() => page.locator("article h3").count(), soon).toBeGreaterThan(0);
      await page.locator("article").getByText("taken").filter({ visible: true }).first().waitFor();
    }
    await expect.poll(() => page.locator("main img, main script").count(), soon).toBe(0);
    expect(await page.title()).toBe("(4 refused) x402 studio");
    // An id from the address bar is an id, and no path.
    for (const path of ["#../harness", "/payments/..%2fharness"]) {
      await page.goto("about:blank");
      await page.goto(`${studio.origin}/studio${path}`);
      await page.getByText("The service knows nothing of this payment").waitFor();
    }
    expect([...new Set(troubles.splice(0))]).toEqual([expect.stringContaining("404")]);
  });
});

describe("at every size", { timeout: 60_000 }, () => {
  /** Payments of every length, one of them under a fault, and a request without a route. */
  async function payAll(): Promise<void> {
    await payAs("empty");
    await payAs("funded", { amount: 1_234_567_890n });
    await fetch(`${studio.origin}/v2/verify`, { method: "POST" });
    await studio.harness.faults.add({ network: "base", kind: "delay", ms: 5 });
    await payAs("blacklisted");
  }

  test("what a session of somebody else says of a payment leads nowhere else, and breaks nothing", async () => {
    const { page } = shown;
    await payAs("empty");
    await page.route("**/payments/*", async (route) => {
      const response = await route.fetch();
      const { payment, ...rest } = await response.json();
      const explanations = payment.explanations.map((one: object) => ({
        ...one,
        more: "javascript:alert(1)",
      }));
      await route.fulfill({
        json: { ...rest, payment: { ...payment, explanations, payerName: "__proto__" } },
      });
    });
    await rows().first().click();
    await expect.poll(article, soon).toContain("__proto__");
    expect(await page.locator('article a[href^="javascript:"]').count()).toBe(0);
  });

  test("in light and in dark every text stands out", async () => {
    await payAll();
    const { page } = shown;
    const expectNoFaintTexts = async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await nextFrame(page);
        expect({ colorScheme, faint: await findFaintTexts(page) }).toEqual({ colorScheme, faint: [] });
      }
    };
    await rows().nth(3).waitFor();
    for (const { id } of await list()) {
      await page.goto(`${studio.origin}/studio/payments/${id}`);
      await page.waitForSelector("article");
      await expectNoFaintTexts();
    }
    for (const view of ["Chains", "Faults", "Setup"] as const) {
      await shown.open(view);
      await page.waitForSelector(".card");
      await expectNoFaintTexts();
    }
  });

  test("from 390 to 1920 px nothing is out of sight, and no word is broken", async () => {
    await payAll();
    await payAs("unapproved", { method: "permit2" });
    const page = await shown.browser.newPage();
    const hiddenIn = (selector: string) =>
      page.locator(selector).evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    /** Ends with the narrowest: that is where the navigation has to be found. */
    const atEveryWidth = async (look: () => Promise<Record<string, unknown>>, good: object) => {
      for (const width of [1_920, 1_440, 1_024, 900, 390]) {
        await page.setViewportSize({ width, height: 700 });
        await nextFrame(page);
        expect({ width, ...(await look()) }).toEqual({ width, ...good });
        expect((await page.locator("header.top").boundingBox())?.height).toBeLessThan(60);
      }
    };
    try {
      await page.goto(`${studio.origin}/studio`);
      await page.locator("tr.row").nth(4).waitFor();
      await atEveryWidth(async () => ({ broken: await findBrokenWords(page, ".scroller") }), { broken: [] });
      for (const payment of await list()) {
        await page.goto(`${studio.origin}/studio/payments/${payment.id}`);
        await page.waitForSelector("article");
        await atEveryWidth(
          async () => ({
            broken: await findBrokenWords(page, ".scroller, article"),
            hidden: [await hiddenIn("html"), await hiddenIn("aside")],
            wideTables: await page.evaluate(`[...document.querySelectorAll("article table")]
              .filter(({ offsetWidth, parentElement }) => offsetWidth > parentElement.clientWidth)
              .map((table) => table.getAttribute("aria-label"))`),
          }),
          { broken: [], hidden: [0, 0], wideTables: [] },
        );
      }
      for (const view of views) {
        await page.getByRole("link", { name: view }).click();
        await page.waitForSelector(view === "Payments" ? "tr.row" : ".card");
        const hidden = async () => ({ view, hidden: [await hiddenIn("html"), await hiddenIn("main")] });
        await atEveryWidth(hidden, { view, hidden: [0, 0] });
      }
    } finally {
      await page.close();
    }
  });

  test("on a phone a payment has two lines, and its details a page of their own with a way back", async () => {
    await payAs("empty");
    const page = await shown.browser.newPage({ viewport: { width: 390, height: 844 } });
    try {
      await page.goto(`${studio.origin}/studio`);
      const row = page.locator("tr.row");
      await row.waitFor();
      const middles = await page.evaluate<number[]>(`[...document.querySelectorAll("tr.row td")]
        .map((cell) => cell.getBoundingClientRect())
        .filter(({ width }) => width > 0)
        .map(({ top, bottom }) => (top + bottom) / 2)
        .sort((a, b) => a - b)`);
      const jumps = middles.filter((middle, index) => middle - (middles[index - 1] ?? middle) > 10);
      // From one line to the other.
      expect(jumps).toHaveLength(1);
      await row.click();
      await page.waitForSelector("article");
      await expect.poll(() => row.isVisible(), soon).toBe(false);
      await page.getByRole("button", { name: "Close" }).click();
      await expect.poll(() => row.isVisible(), soon).toBe(true);
    } finally {
      await page.close();
    }
  });

  test("it is used by keyboard alone, and a screen reader has a name for everything", async () => {
    const { page } = shown;
    await payAs("empty");
    await rows().first().waitFor();
    const tabTo = async (name: string) => {
      // Behind the last control it begins anew.
      for (let pressed = 0; pressed < 80; pressed++) {
        await page.keyboard.press("Tab");
        if ((await page.evaluate("document.activeElement.textContent")) === name) return;
      }
      throw new Error(`Tab does not reach ${name}`);
    };
    await tabTo("empty");
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await page.keyboard.press("Enter");
    await page.waitForSelector("article");
    await tabTo("Copy ");
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Copy as curl" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("menuitem").count(), soon).toBe(0);
    await button("Pay again").focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=2 of 2");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator("article").count(), soon).toBe(0);
    for (const view of views) {
      await shown.open(view);
      const nameless = await page.evaluate(`[...document.querySelectorAll("button, input, select")]
        .filter((control) => {
          const texts = [control, ...control.labels].map(({ textContent }) => textContent);
          return (control.ariaLabel ?? texts.join("")).trim() === "";
        })
        .map(({ outerHTML }) => outerHTML)`);
      expect(nameless).toEqual([]);
    }
  });
});

describe("the stream", { timeout: 60_000 }, () => {
  test("a reload in mid-stream and further tabs show every payment once", async () => {
    const { page, browser, troubles } = shown;
    const tabs = [page, await browser.newPage(), await browser.newPage()];
    try {
      for (const tab of tabs.slice(1)) await tab.goto(`${studio.origin}/studio`);
      const paying = (async () => {
        for (let count = 0; count < 20; count++) await payAs(count % 2 === 0 ? "funded" : "empty");
      })();
      for (let reloads = 0; reloads < 3; reloads++) {
        await page.reload();
        await page.waitForSelector("text=live");
      }
      await paying;
      for (const tab of tabs) {
        await tab.waitForSelector("text=20 of 20");
        const ids = (await list()).map(({ id }) => id);
        expect(new Set(ids).size).toBe(20);
        await expect.poll(() => tab.locator("tr.row").count(), soon).toBeGreaterThan(10);
      }
      // What one tab resets, the others forget as well, with the payment that is open there.
      await rows().first().click();
      await page.waitForSelector("article");
      const [, other] = tabs;
      await other?.getByRole("link", { name: "Chains" }).click();
      await other?.getByRole("button", { name: "Reset…" }).click();
      await other?.getByRole("button", { name: "Reset everything" }).click();
      await page.getByText("The service knows nothing of this payment").waitFor();
      expect(troubles.splice(0)).toEqual([expect.stringContaining("404")]);
    } finally {
      for (const tab of tabs.slice(1)) await tab.close();
    }
  });

  test("after the stream of events has broken, it goes on with every payment once", async () => {
    await using connection = await openBreakable(Number(new URL(studio.origin).port));
    const watching = await shown.browser.newPage();
    try {
      await watching.goto(`http://127.0.0.1:${connection.port}/studio`);
      await watching.waitForSelector("text=live");
      await payAs("funded");
      await watching.waitForSelector("text=1 of 1");
      await connection.break();
      await watching.waitForSelector("text=connection lost");
      await payAs("empty");
      await connection.mend();
      await watching.waitForSelector("text=live", soon);
      await watching.waitForSelector("text=2 of 2");
      await payAs("smartWallet");
      await watching.waitForSelector("text=3 of 3");
      const payers = await watching.locator("tr.row button.open").allTextContents();
      expect(payers.toSorted()).toEqual(["empty", "funded", "smartWallet"]);
    } finally {
      await watching.close();
    }
  });

  test("thousands of payments stay quick: only the rows in view are in the page", async () => {
    const { page } = shown;
    await announcePayments(5_000);
    await page.waitForSelector("text=5000 of 5000", { timeout: 50_000 });
    await expect.poll(() => rows().count(), soon).toBeLessThan(100);
    await page.locator(".scroller").evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.waitForSelector('tr[aria-rowindex="5001"]');
    await expect.poll(() => rows().count(), soon).toBeLessThan(100);
  });

  test("of a mock it offers nothing that needs a chain", async () => {
    const { page } = shown;
    await using mock = await startMockServer();
    const at = mock.url.replace(/\/v1$/, "");
    const { request } = await findScenario("settle.insufficient_funds").plan(mock.environment);
    const { path, headers, body = null } = request;
    await fetch(`${at}${path}`, { method: "POST", headers, body });
    await page.goto(`${at}/studio`);
    await rows().first().click();
    await page.waitForSelector("article");
    await expect
      .poll(() => page.locator(".again button, .explanation button").allTextContents(), soon)
      .toEqual(["Copy "]);
    await page.getByRole("button", { name: "Copy", exact: true }).first().click();
    await expect
      .poll(() => page.getByRole("menuitem").allTextContents(), soon)
      .toEqual([...["Copy as test", "Copy scenario", "Copy link", "Copy id"]]);
    await expect.poll(() => page.locator("nav a").allTextContents(), soon).toEqual(["Payments", "Setup"]);
    await expect.poll(() => page.getByRole("button", { name: "Pay…" }).count(), soon).toBe(0);
    // Before its service ends.
    await page.goto("about:blank");
  });
});

/** Until the page has been drawn with what it holds by now. */
async function nextFrame(page: { evaluate(code: string): Promise<unknown> }): Promise<void> {
  await page.evaluate("new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))");
}

/** Words that stand in two lines, in what matches. */
function findBrokenWords(
  page: { evaluate(code: string): Promise<unknown> },
  within: string,
): Promise<unknown> {
  return page.evaluate(`(() => {
    const broken = [];
    const range = document.createRange();
    for (const root of document.querySelectorAll(${JSON.stringify(within)})) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!element.checkVisibility() || element.closest("pre, .unseen")) continue;
        for (const { 0: word, index } of node.data.matchAll(/[^\\s-]+/g)) {
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          const tops = [...range.getClientRects()].map(({ top }) => Math.round(top / 4));
          if (new Set(tops).size > 1) broken.push(word);
        }
      }
    }
    return broken;
  })()`);
}

/** A port that leads to another, until it is broken; all connections end then. */
async function openBreakable(target: number) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const onward = connect(target, "127.0.0.1");
    for (const each of [socket, onward]) {
      sockets.add(each.on("error", () => {}).on("close", () => sockets.delete(each)));
    }
    pipeline(socket, onward, socket, () => {});
  });
  const listen = (port: number) => once(server.listen(port, "127.0.0.1"), "listening");
  await listen(0);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const end = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { port, break: end, mend: () => listen(port), [Symbol.asyncDispose]: end };
}

/** Publishes what a service would of so many payments, without paying them. */
async function announcePayments(count: number): Promise<void> {
  let serviceId = "";
  const unsubscribe = channels.request.subscribe((message) => {
    serviceId = message.serviceId;
  });
  const body = await signedRequest(studio.harness);
  await post(studio.harness, "verify", body);
  unsubscribe();
  const read = parsePaymentRequest(body);
  if (!read.ok) throw new Error("the payment is malformed");
  for (let index = 1; index < count; index++) {
    const nonce = toHex(globalThis.crypto.getRandomValues(new Uint8Array(32)));
    const settlementId = nonce;
    const payment = {
      ...read.request,
      settlementId,
      payment: { ...read.request.payment, nonce },
    };
    const requestId = `announced-${index}`;
    publish("request", { serviceId, requestId, operation: "verify", settlementId, payment });
    publish("answer", {
      serviceId,
      requestId,
      operation: "verify",
      payment,
      settlementId,
      status: 200,
      result: { outcome: "valid" },
      tookMs: 1,
    });
  }
}
