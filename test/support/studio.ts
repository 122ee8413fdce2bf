import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type PaymentSpec, pay } from "../../src/harness/control/pay.ts";
import type { RunningHarness, StartOptions } from "../../src/harness/run/running-harness.ts";
import type { PaymentDetail, PaymentSummary } from "../../src/observe/timeline/payment-view.ts";
import { startBrowser } from "./browser.ts";
import { startTestHarness } from "./service.ts";

/** A running `up` with its studio, which is reset before each test. */
export type Studio = {
  readonly harness: RunningHarness;
  /** Without `/v1`. */
  readonly origin: string;
  payAs(payer: PaymentSpec["payer"], spec?: Partial<PaymentSpec>): ReturnType<typeof pay>;
  get<T>(path: string): Promise<T>;
  /** Newest first. */
  list(): Promise<PaymentSummary[]>;
  detailOf(id: string | undefined): Promise<PaymentDetail>;
};

/**
 * Starts, resets and ends a studio for the tests in a file. It is only available while they run.
 *
 * @param startOptions other options of its harness
 */
export function useStudio(startOptions: () => Promise<Partial<StartOptions>> = async () => ({})): Studio {
  let running: RunningHarness | undefined;
  beforeAll(async () => {
    running = await startTestHarness({ networks: ["base"], studio: true, ...(await startOptions()) });
  });
  beforeEach(() => running?.reset());
  afterAll(() => running?.close());

  const studio: Studio = {
    get harness() {
      if (running === undefined) throw new Error("the studio has not started");
      return running;
    },
    get origin() {
      return new URL(studio.harness.description.facilitator.url).origin;
    },
    payAs: (payer, spec) =>
      pay(studio.harness.description, { network: "base", ...(payer !== undefined && { payer }), ...spec }),
    async get<T>(path: string): Promise<T> {
      const response = await fetch(`${studio.origin}${path}`);
      return (await response.json()) as T;
    },
    list: async () => (await studio.get<{ payments: PaymentSummary[] }>("/payments")).payments,
    detailOf: async (id) => (await studio.get<{ payment: PaymentDetail }>(`/payments/${id ?? ""}`)).payment,
  };
  return studio;
}

/** For content that the page shows a moment later. */
export const soon = { timeout: 20_000 };

/** The studio in a Chromium tab, reloaded for each test. A test fails if the page has an error. */
export type StudioPage = {
  readonly browser: Browser;
  readonly page: Page;
  /** The errors on the page; a test that expects one removes it. */
  readonly troubles: string[];
  rows(): ReturnType<Page["locator"]>;
  button(name: string | RegExp): ReturnType<Page["getByRole"]>;
  /** Waits until the page has shown this message. */
  said(text: string | RegExp): Promise<void>;
  /** Follows a link in the navigation. */
  open(view: "Payments" | "Chains" | "Faults" | "Setup"): Promise<void>;
};

export function useStudioPage(studio: Studio): StudioPage {
  let browser: Browser | undefined;
  let page: Page | undefined;
  const troubles: string[] = [];
  beforeAll(async () => {
    browser = await startBrowser();
    page = await browser.newPage();
    page.on("pageerror", (error) => troubles.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") troubles.push(message.text());
    });
  });
  beforeEach(async () => {
    await page?.goto(`${studio.origin}/studio`);
    await page?.waitForSelector("text=live");
  });
  afterEach(async () => {
    await page?.unrouteAll({ behavior: "ignoreErrors" });
    await page?.emulateMedia({ colorScheme: null });
    // Before the studio is reset.
    await page?.goto("about:blank");
    expect(troubles.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());

  const opened: StudioPage = {
    get browser() {
      if (browser === undefined) throw new Error("the browser has not started");
      return browser;
    },
    get page() {
      if (page === undefined) throw new Error("no page is open");
      return page;
    },
    troubles,
    rows: () => opened.page.locator("tr.row"),
    button: (name) => opened.page.getByRole("button", { name, exact: true }),
    said: (text) => opened.page.locator("output").getByText(text).waitFor(soon),
    open: (view) => opened.page.getByRole("link", { name: view }).click(),
  };
  return opened;
}
