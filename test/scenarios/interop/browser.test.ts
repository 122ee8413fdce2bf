import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findScenario } from "../../../src/fixtures/index.ts";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { startBrowser } from "../../support/browser.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";

/*
 * The fixtures behind the service worker of msw, in a real Chromium: the page signs, verifies and settles, and there is
 * no facilitator but in the page.
 */

const worker = fileURLToPath(import.meta.resolve("msw/mockServiceWorker.js"));
const entry = fileURLToPath(new URL("../../support/page/page.ts", import.meta.url));

let site: LoopbackServer;
let browser: Browser;
let page: Page;
/** Errors that the page has not caught. */
const troubles: string[] = [];

beforeAll(async () => {
  const files: Readonly<Record<string, { type: string; content: string }>> = {
    "/": { type: "text/html", content: '<!doctype html><script type="module" src="/page.js"></script>' },
    "/page.js": { type: "text/javascript", content: await bundle() },
    "/mockServiceWorker.js": { type: "text/javascript", content: await readFile(worker, "utf8") },
  };
  site = await listenOnLoopback((request, response) => {
    const file = files[request.url ?? ""];
    if (file === undefined) return response.writeHead(404).end();
    return response.writeHead(200, { "content-type": file.type }).end(file.content);
  });
  browser = await startBrowser();
  page = await browser.newPage();
  page.on("pageerror", (error) => troubles.push(String(error)));
  await page.goto(site.origin);
  await page.waitForFunction("document.title === 'ready'", undefined, { timeout: 20_000 });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

async function bundle(): Promise<string> {
  const build = await rolldown({ input: entry, platform: "browser", logLevel: "silent" });
  try {
    const { output } = await build.generate({ format: "esm", minify: true, codeSplitting: false });
    return output[0].code;
  } finally {
    await build.close();
  }
}

const isGood = { isValid: true, payer: testPayers.funded.address };
const isSettled = { success: true, network: "eip155:8453", payer: testPayers.funded.address };

test("a page pays, and is told of a payer without money and of an answer that is lost", async () => {
  expect(await page.evaluate("page.pay('funded')")).toMatchObject({ verify: isGood, settle: isSettled });
  expect(await page.evaluate("page.pay('empty')")).toMatchObject({
    verify: { isValid: false, invalidReason: "insufficient_funds" },
    settle: { success: false, errorReason: "insufficient_funds", transaction: "" },
  });
  expect(await page.evaluate("page.pay('funded', 'settle.v2.connection.answer_lost')")).toMatchObject({
    verify: isGood,
    settle: "TypeError",
    again: isSettled,
  });
  expect(await page.evaluate("page.asked()")).toEqual([
    ["verify", undefined],
    ["settle", undefined],
    ["verify", undefined],
    ["settle", undefined],
    ["verify", undefined],
    ["settle", "settle.v2.connection.answer_lost"],
    ["settle", undefined],
  ]);
  expect(troubles).toEqual([]);
});

test("a page asks the mock server, which is of another origin, and reads where the settlement is", async () => {
  await using mock = await startMockServer({ corsOrigins: [new URL(page.url()).origin] });
  const { request } = await findScenario("settle.success").plan(mock.environment);
  const { method, path, headers, body = "" } = request;
  const settle = { url: mock.url.replace("/v1", path), method, headers, body };
  const answer = await page.evaluate(async ({ url, ...init }) => {
    const response = await fetch(url, init);
    return { location: response.headers.get("location"), body: await response.json() };
  }, settle);
  expect(answer).toMatchObject({
    location: expect.stringMatching(/^\/v1\/settlements\/0x/),
    body: { success: true, payer: testPayers.funded.address },
  });
  // Chromium asks again by itself when a connection that was used before is reset.
  mock.scenario("settle.connection.reset_before").always();
  const failure = page.evaluate(async ({ url, ...init }) => fetch(url, init).then(String, String), settle);
  expect(await failure).toBe("TypeError: Failed to fetch");
});

test("a Chromium that another user has put in the shared folder for temporary files is not run", async () => {
  const temporary = await mkdtemp(join(tmpdir(), "x402-kit-browser-"));
  const { TMPDIR } = process.env;
  try {
    await writeFile(join(temporary, "chromium"), `#!/bin/sh\ntouch "${temporary}/was-run"\n`, {
      mode: 0o755,
    });
    process.env.TMPDIR = temporary;
    await (await startBrowser()).close();
    expect(await readdir(temporary)).toEqual(["chromium"]);
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    await rm(temporary, { recursive: true });
  }
});
