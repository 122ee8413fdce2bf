import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { startBrowser } from "../../support/browser.ts";
import { repository } from "../../support/cli.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";

/*
 * The wallet of a harness in a real Chromium, with the page and the shop of examples/browser: the page is of one origin, and the shop
 * of another.
 */

const example = join(repository, "examples/browser");
// The example is JavaScript without types.
const { createShop } = await import(join(example, "shop.mjs"));

let browser: Browser;
let site: LoopbackServer;
let harness: Harness<"base" | "polygon">;
beforeAll(async () => {
  const build = await rolldown({ input: join(example, "page.js"), platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "esm", codeSplitting: false });
  await build.close();
  const page = await readFile(join(example, "index.html"), "utf8");
  site = await listenOnLoopback(({ url = "" }, response) => {
    const isScript = url === "/page.js";
    const type = isScript ? "text/javascript" : "text/html";
    response.writeHead(200, { "content-type": type }).end(isScript ? output[0].code : page);
  });
  [browser, harness] = await Promise.all([startBrowser(), createHarness({ networks: ["polygon", "base"] })]);
}, 60_000);
beforeEach(() => harness.reset());
afterAll(async () => {
  await Promise.all([browser?.close(), site?.close(), harness?.close()]);
});

/** Opens the page with a wallet, presses its button, and gives what it shows then. */
async function buyInPage(payer: "funded" | "empty"): Promise<string> {
  const shop = createServer(createShop(harness.shopConfig("base", "0.01"), site.origin));
  await once(shop.listen(0, "127.0.0.1"), "listening");
  const { port } = Object(shop.address());
  const page = await browser.newPage();
  try {
    const wallet = harness.wallet({ payer });
    await page.exposeFunction(wallet.binding, wallet.request);
    await page.addInitScript(wallet.script);
    const { caip2: network, asset } = harness.networks.base;
    const query = { shop: `http://127.0.0.1:${port}/report`, network, asset: asset.address };
    await page.goto(`${site.origin}/?${new URLSearchParams(query)}`);
    await page.click("button");
    await page.waitForSelector("output:not(:empty)", { timeout: 20_000 });
    return (await page.textContent("output")) ?? "";
  } finally {
    await page.close();
    shop.closeAllConnections();
    shop.close();
  }
}

const earned = () => harness.networks.base.balanceOf(harness.organization.recipient);

test("a page buys at a shop of another origin", async () => {
  expect(await buyInPage("funded")).toBe('200 {"report":"all is well"}');
  expect(await earned()).toBe(10_000n);
});

test("a page with an empty account gets nothing", async () => {
  expect(await buyInPage("empty")).toContain("402");
  expect(await earned()).toBe(0n);
});

test("a page finds the wallet, asks it and its chain, and hears of another chain", async () => {
  const page = await browser.newPage();
  const wallet = harness.wallet({ network: "polygon" });
  await page.exposeFunction(wallet.binding, wallet.request);
  await page.addInitScript(wallet.script);
  await page.goto(site.origin);
  const seen = await page.evaluate(async () => {
    const found: { detail: { provider: unknown; info: { rdns: string } } } = await new Promise((resolve) => {
      const on = Reflect.get(globalThis, "addEventListener");
      on("eip6963:announceProvider", resolve);
      Reflect.get(globalThis, "dispatchEvent")(new Event("eip6963:requestProvider"));
    });
    type Provider = {
      request(request: object): Promise<unknown>;
      on(event: string, listener: (value: unknown) => void): unknown;
    };
    const { provider, info } = found.detail as { provider: Provider; info: { rdns: string } };
    const ask = (method: string, ...params: unknown[]) =>
      provider.request({ method, params }).catch((error) => Reflect.get(Object(error), "code"));
    const heard: unknown[] = [];
    provider.on("chainChanged", (chainId) => heard.push(chainId));
    const [account] = Object(await ask("eth_requestAccounts"));
    const before = await ask("eth_chainId");
    const unknown = await ask("wallet_switchEthereumChain", { chainId: "0x1" });
    await ask("wallet_switchEthereumChain", { chainId: "0x2105" });
    return {
      rdns: info.rdns,
      isUsual: Reflect.get(globalThis, "ethereum") === provider,
      account,
      chains: [before, unknown, await ask("eth_chainId"), await ask("net_version")],
      heard,
      signature: await ask("personal_sign", "0x68656c6c6f", account),
      ofAnother: await ask("personal_sign", "0x68656c6c6f", `0x${"11".repeat(20)}`),
      malformed: await ask("eth_signTypedData_v4", account, "{"),
      unknown: await ask("wallet_doEverything"),
    };
  });
  await page.close();
  expect(seen).toMatchObject({
    rdns: "dev.x402-kit.test-wallet",
    isUsual: true,
    account: testPayers.funded.address,
    chains: ["0x89", 4902, "0x2105", "8453"],
    heard: ["0x2105"],
    ofAnother: 4100,
    malformed: -32602,
    unknown: -32601,
  });
  const { client } = harness.networks.base;
  const { address } = testPayers.funded;
  const signature = seen.signature as `0x${string}`;
  expect(await client.verifyMessage({ address, message: "hello", signature })).toBe(true);
});

test("it signs for the chain that it is on, and for no other", async () => {
  const wallet = harness.wallet({ network: "base" });
  const typed = (chainId: number | string) => ({
    domain: { name: "x", chainId },
    types: {
      EIP712Domain: [
        { name: "name", type: "string" },
        { name: "chainId", type: "uint256" },
      ],
      M: [{ name: "v", type: "uint256" }],
    },
    primaryType: "M",
    message: { v: "7" },
  });
  const sign = (chainId: number | string) =>
    wallet.request({
      method: "eth_signTypedData_v4",
      params: [wallet.address, JSON.stringify(typed(chainId))],
    });
  expect(await sign(137)).toMatchObject({ error: { code: -32602 }, chainId: "0x2105" });
  const signed = await sign("8453");
  expect(signed).toMatchObject({ result: expect.stringMatching(/^0x[0-9a-f]{130}$/) });
  expect(await sign(8453)).toEqual(signed);
});

test("a payer that there is not, and a chain that does not run, are refused by name", () => {
  // @ts-expect-error there is no such payer
  expect(() => harness.wallet({ payer: "rich" })).toThrow("funded");
  // @ts-expect-error optimism does not run
  expect(() => harness.wallet({ network: "optimism" })).toThrow(/"optimism" is not one of polygon, base/);
});
