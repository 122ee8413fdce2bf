import { HTTPFacilitatorClient } from "@x402/core/server";
import { declareDiscoveryExtension, withBazaar } from "@x402/extensions/bazaar";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { addRival, type Body, post, signedRequest, startTestHarness } from "../../support/service.ts";

/*
 * GET /discovery/resources and GET /discovery/search: what an organization was paid for, read with the public client.
 */

let harness: RunningHarness;
let rivalKey: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], discovery: true });
  rivalKey = await addRival(harness);

  await pay("https://shop.example/weather?city=Rome", (body) => {
    Object.assign(body.paymentPayload.resource, {
      ...{ description: "Weather, by the hour", mimeType: "application/json" },
      ...{ serviceName: "Shop", tags: ["weather", "forecast"], iconUrl: "https://shop.example/icon.png" },
    });
    const extensions: Body = declareDiscoveryExtension({
      input: { city: "Rome" },
      inputSchema: { properties: { city: { type: "string" } } },
    });
    extensions.bazaar.info.input.method = "GET";
    body.paymentPayload.extensions = extensions;
  });
  await pay("https://shop.example/report");
  await settle(await signedRequest(harness), localOrganization.apiKey);
  await pay("https://rival.example/secret", undefined, rivalKey);
  const refused = await signedRequest(harness, { x402Version: 2, payer: "empty" });
  refused.paymentPayload.resource.url = "https://shop.example/never-paid";
  await post(harness, "settle", refused);
  await vi.waitFor(async () => {
    expect((await bazaarOf().listResources()).items).toHaveLength(3);
    expect((await bazaarOf(rivalKey).listResources()).items).toHaveLength(1);
  });
});
afterAll(() => harness.close());

async function pay(
  url: string,
  change: (body: Body) => void = () => {},
  key: string = localOrganization.apiKey,
): Promise<void> {
  const body = await signedRequest(harness, { x402Version: 2 });
  body.paymentPayload.resource.url = url;
  change(body);
  await settle(body, key);
}

async function settle(body: Body, authorization: string): Promise<void> {
  expect((await post(harness, "settle", body, { authorization })).body).toMatchObject({ success: true });
}

/** The public client; `base` is one of the two that it works with. */
function bazaarOf(key: string = localOrganization.apiKey, base = "/v1") {
  const headers = { Authorization: key };
  const client = new HTTPFacilitatorClient({
    url: `${new URL(harness.description.facilitator.url).origin}${base}`,
    createAuthHeaders: async () => ({ verify: {}, settle: {}, supported: {}, bazaar: headers }),
  });
  return withBazaar(client).extensions.bazaar;
}

const get = (path: string, key: string = localOrganization.apiKey) =>
  requestJson(`${harness.description.facilitator.url}${path}`, {
    method: "GET",
    headers: key === "" ? {} : { authorization: key },
  });

describe("the public client lists", () => {
  test("what the organization was paid for, with all that was said of it", async () => {
    const { x402Version, items, pagination } = await bazaarOf().listResources();
    expect(x402Version).toBe(2);
    expect(pagination).toEqual({ limit: 20, offset: 0, total: 3 });
    const weather = items.find(({ resource }) => resource.endsWith("/weather"));
    expect(weather).toMatchObject({
      ...{ resource: "https://shop.example/weather", type: "http", x402Version: 2 },
      ...{ description: "Weather, by the hour", mimeType: "application/json", serviceName: "Shop" },
      ...{ tags: ["weather", "forecast"], iconUrl: "https://shop.example/icon.png" },
      accepts: [{ scheme: "exact", network: "eip155:8453", amount: "10000" }],
      extensions: { bazaar: { info: { input: { type: "http", queryParams: { city: "Rome" } } } } },
    });
    expect(Date.parse(weather?.lastUpdated ?? "")).toBeGreaterThan(Date.now() - 600_000);
    // Version 1 names the resource in its requirements.
    expect(items).toContainEqual(
      expect.objectContaining({ x402Version: 1, resource: "https://merchant.example/resource" }),
    );
  });

  test("nothing that was not paid for, and nothing of another organization", async () => {
    const own = JSON.stringify(await bazaarOf().listResources());
    expect(own).not.toContain("never-paid");
    expect(own).not.toContain("rival.example");
    expect((await bazaarOf(rivalKey).listResources()).items).toMatchObject([
      { resource: "https://rival.example/secret" },
    ]);
    expect((await bazaarOf(rivalKey).search({ query: "weather report shop" })).resources).toEqual([]);
  });

  test("pages, and what the filters let through, at either base URL", async () => {
    const root = bazaarOf(localOrganization.apiKey, "");
    const first = await root.listResources({ limit: 2 });
    const second = await root.listResources({ limit: 2, offset: 2 });
    expect([...first.items, ...second.items].map(({ resource }) => resource).sort()).toEqual([
      "https://merchant.example/resource",
      "https://shop.example/report",
      "https://shop.example/weather",
    ]);
    const total = async (params: object) => (await root.listResources(params)).pagination.total;
    expect(await total({ type: "http", scheme: "exact", network: "eip155:8453" })).toBe(3);
    expect(await total({ network: "base" })).toBe(3);
    expect(await total({ network: "eip155:137" })).toBe(0);
    expect(await total({ type: "mcp" })).toBe(0);
    expect(await total({ extensions: "bazaar" })).toBe(1);
    expect(await total({ payTo: harness.chains.base?.facilitatorContract })).toBe(3);
    expect(await total({ payTo: harnessAccounts.admin.address })).toBe(0);
  });

  test("what has the words of a search, the most words first, page by page", async () => {
    const { resources, pagination } = await bazaarOf().search({ query: "hourly WEATHER forecast shop" });
    expect(resources.map(({ resource }) => resource)).toEqual([
      "https://shop.example/weather",
      "https://shop.example/report",
    ]);
    expect(pagination).toEqual({ limit: 20, cursor: null });
    const page = await bazaarOf().search({ query: "shop", limit: 1 });
    expect(page.pagination).toEqual({ limit: 1, cursor: "1" });
    const next = await bazaarOf().search({ query: "shop", limit: 1, cursor: "1" });
    expect(next.resources).toHaveLength(1);
    expect(next.resources).not.toEqual(page.resources);
  });
});

describe("the routes", () => {
  test("need a key, and say what is wrong with a query", async () => {
    expect((await get("/discovery/resources", "")).status).toBe(401);
    for (const query of ["limit=0", "limit=101", "offset=-1", "type=ftp", "payTo=0x1", "nonsense=1"]) {
      expect([query, (await get(`/discovery/resources?${query}`)).status]).toEqual([query, 400]);
    }
    expect((await get("/discovery/search")).body).toMatchObject({ detail: "query is needed" });
    expect((await get(`/discovery/search?query=${"x".repeat(201)}`)).status).toBe(400);
  });
});
