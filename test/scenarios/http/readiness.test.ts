import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { NetworkHealth } from "../../../src/protocol/answers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Alive, ready for something, ready for a network: what a balancer and an alert ask for.
 */

let app: StubApp;
let checks: number;
afterEach(() => app.close());

const up: NetworkHealth = { ready: true, detail: "ok" };
const down: NetworkHealth = { ready: false, detail: "the RPC does not answer" };

async function start(health: Record<string, NetworkHealth>): Promise<void> {
  checks = 0;
  app = await startStubApp({
    checkHealth: async () => {
      checks++;
      return health;
    },
  });
}
const get = (path: string) => requestJson(app.origin + path);

describe("GET /readyz", () => {
  test.each([
    ["all networks up", { base: up, polygon: up }, 200, "ready"],
    ["one of two down", { base: up, polygon: down }, 200, "degraded"],
    ["all down", { base: down, polygon: down }, 503, "not ready"],
    ["none configured", {}, 503, "not ready"],
  ])("%s", async (_name, health, status, word) => {
    await start(health);
    expect(await get("/readyz")).toMatchObject({ status, body: { status: word, networks: health } });
  });

  test.each([
    ["?network=base", 200, { base: up }],
    ["?network=polygon", 503, { polygon: down }],
    ["?network=base&network=polygon", 503, { base: up, polygon: down }],
    ["?network=base&network=optimism", 200, { base: up, optimism: up }],
    ["?other=1", 200, { base: up, optimism: up, polygon: down }],
  ])("%s asks for those alone", async (query, status, networks) => {
    await start({ base: up, optimism: up, polygon: down });
    expect(await get(`/readyz${query}`)).toMatchObject({ status, body: { networks } });
  });

  test.each([
    "?network=solana",
    "?network=",
    "?network=__proto__",
    "?network=constructor",
    "?network=toString",
    "?network[]=base",
    "?network=base&network=%ff",
    `?network=${"x".repeat(200)}`,
  ])("%s is no network here, or ignored, and never an error of ours", async (query) => {
    await start({ base: up });
    const answer = await get(`/readyz${query}`);
    expect([200, 404]).toContain(answer.status);
    expect(JSON.stringify(answer.body).length).toBeLessThan(600);
  });

  test("a network that is not there is 404 and names those that are", async () => {
    await start({ base: up, polygon: down });
    expect(await get("/readyz?network=solana")).toMatchObject({
      status: 404,
      body: { detail: "This network is not served here; served: base, polygon" },
    });
  });

  test("asks the networks once a second at most, however many ask", async () => {
    await start({ base: up });
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 100 }, () => get("/readyz")));
    await get("/readyz?network=base");
    expect(checks).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
    const before = checks;
    await sleep(1_050);
    await get("/readyz");
    expect(checks).toBe(before + 1);
  });
});

test("a network that hangs holds up neither GET /livez nor, for long, GET /readyz", async () => {
  app = await startStubApp({ checkHealth: () => new Promise(() => {}) });
  const hanging = get("/readyz");
  expect(await get("/livez")).toMatchObject({ status: 200, body: { status: "ok" } });
  expect(await hanging).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
});

test("probes are not logged by default", async () => {
  app = await startStubApp({ logLevel: "info" });
  await get("/livez");
  await get("/readyz");
  await get("/v1/supported");
  expect(app.log.filter(({ msg }) => msg === "request").map(({ route }) => route)).toEqual(["/v1/supported"]);
});
