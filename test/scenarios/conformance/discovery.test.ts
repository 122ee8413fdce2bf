import { setTimeout as sleep } from "node:timers/promises";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { declareDiscoveryExtension, withBazaar } from "@x402/extensions/bazaar";
import fc from "fast-check";
import { setupServer } from "msw/node";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createFixtures } from "../../../src/fixtures/index.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, signedRequest, startTestHarness } from "../../support/service.ts";
import { signInWay } from "../../support/ways.ts";

/*
 * Discovery of the service, the mock server and the fixtures, where it is on: the same payments are shown alike.
 */

const fixturesUrl = "https://discovery.example/v1";
const fixtures = createFixtures({ baseUrl: fixturesUrl, networks: ["base"], discovery: true });
const intercepted = setupServer(...fixtures.handlers);

let harness: RunningHarness;
let mock: MockServer;
let places: Readonly<Record<"service" | "mock" | "fixtures", string>>;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], discovery: true });
  mock = await startMockServer({ networks: ["base"], discovery: true });
  intercepted.listen({ onUnhandledFrame: "bypass" });
  places = { service: harness.description.facilitator.url, mock: mock.url, fixtures: fixturesUrl };

  const extensions: Body = declareDiscoveryExtension({
    input: { city: "Rome" },
    inputSchema: { properties: { city: { type: "string" } } },
  });
  extensions.bazaar.info.input.method = "GET";
  const weather = { description: "Weather, by the hour", serviceName: "Shop", tags: ["weather"] };
  await payEverywhere("https://shop.example/weather?city=Rome", (body) => {
    Object.assign(body.paymentPayload.resource, weather);
    body.paymentPayload.extensions = extensions;
  });
  await payEverywhere("https://shop.example/report");
  await payEverywhere("https://shop.example/report#again");
  await payEverywhere("not an address");
  const first = await signedRequest(harness);
  await settleEverywhere(first, testKeys.local.apiKey);
  const upto = await signInWay(
    { name: "upto", straight: false, method: "permit2", takes: "some" },
    { chain: runningChain(harness, "base"), value: 10_000n },
  );
  upto.body.paymentPayload.resource = { url: "https://shop.example/metered" };
  await settleEverywhere(upto.body, testKeys.local.apiKey);
  const refused = await signedRequest(harness, { x402Version: 2, payer: "empty" });
  await settleEverywhere(refused, testKeys.local.apiKey);
  await vi.waitFor(async () => {
    expect((await everywhere("resources")).service.body.items).toHaveLength(4);
  });
});
afterAll(async () => {
  intercepted.close();
  fixtures.dispose();
  await mock?.close();
  await harness?.close();
});

async function payEverywhere(url: string, change: (body: Body) => void = () => {}): Promise<void> {
  const body = await signedRequest(harness, { x402Version: 2 });
  body.paymentPayload.resource.url = url;
  change(body);
  await settleEverywhere(body, testKeys.local.apiKey);
}

/** One after the other, and not in one millisecond: the order in which they come is that of time. */
async function settleEverywhere(body: Body, authorization: string): Promise<void> {
  const headers = { authorization, "content-type": "application/json" };
  for (const url of Object.values(places)) {
    const response = await fetch(`${url}/settle`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(200);
  }
  await sleep(5);
}

/** The answer of each of the three, without times and ids of its own. */
async function everywhere(path: string, authorization: string = testKeys.local.apiKey) {
  const ask = async (url: string) => {
    const response = await fetch(`${url}/discovery/${path}`, { headers: { authorization } });
    const body: Body = JSON.parse(await response.text(), (name, value) =>
      name === "lastUpdated" || name === "instance" ? "" : value,
    );
    return { status: response.status, type: response.headers.get("content-type"), body };
  };
  const { service, mock: mocked, fixtures: fixture } = places;
  return { service: await ask(service), mocked: await ask(mocked), fixture: await ask(fixture) };
}

async function expectAlike(path: string, key?: string): Promise<void> {
  const { service, mocked, fixture } = await everywhere(path, key);
  expect([path, mocked]).toEqual([path, service]);
  expect([path, fixture]).toEqual([path, service]);
}

test("what was paid for is listed and found alike, and by the public client", async () => {
  await expectAlike("resources");
  await expectAlike("search?query=hourly+WEATHER");
  await expectAlike("resources", testKeys.rival.apiKey);
  const createAuthHeaders = async () => ({
    ...{ verify: {}, settle: {}, supported: {} },
    bazaar: { Authorization: testKeys.local.apiKey },
  });
  const client = withBazaar(new HTTPFacilitatorClient({ url: mock.url, createAuthHeaders }));
  const { items, pagination } = await client.extensions.bazaar.listResources();
  expect(pagination.total).toBe(4);
  expect(items.map(({ resource }) => resource)).toContain("https://shop.example/weather");
});

test("what was paid for by scheme upto is found by that, with the maximum that was offered", async () => {
  await expectAlike("resources?scheme=upto");
  const { items } = (await everywhere("resources?scheme=upto")).service.body;
  const extra = {
    ...{ name: "USD Coin", version: "2", assetTransferMethod: "permit2" },
    facilitatorAddress: runningChain(harness, "base").facilitatorContract,
  };
  expect(items).toMatchObject([
    { resource: "https://shop.example/metered", accepts: [{ scheme: "upto", amount: "20000", extra }] },
  ]);
});

const value = fc.constantFrom(
  ...[
    "",
    "1",
    "2",
    "0",
    "101",
    "-1",
    "1.5",
    "http",
    "mcp",
    "ftp",
    "base",
    "eip155:8453",
    "polygon",
    "bazaar",
  ],
  ...["exact", "upto", "weather", "shop+report", "%20", "%zz", "x".repeat(201), "0x1"],
  "0xE09e2221cD864A64554e54D4E43adffb9aa9f8FE",
);
const parameter = fc.constantFrom(
  ...["type", "payTo", "scheme", "network", "extensions", "limit", "offset", "query", "cursor", "nonsense"],
);
const query = fc
  .array(fc.tuple(parameter, value), { maxLength: 3 })
  .map((pairs) => pairs.map(([name, text]) => `${name}=${text}`).join("&"));

test("queries drawn at random are answered alike", async () => {
  const paths = fc.tuple(fc.constantFrom("resources?", "search?", "search?query=shop&"), query);
  for (const [path, drawn] of fc.sample(paths, 100)) await expectAlike(`${path}${drawn}`);
});

test("a key is needed, and what was paid for is forgotten with the rest", async () => {
  await expectAlike("resources", "nonsense");
  mock.reset();
  expect((await everywhere("resources")).mocked.body).toMatchObject({ items: [] });
});
