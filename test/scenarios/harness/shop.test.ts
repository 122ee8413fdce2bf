import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";

/* A shop of the public packages, made with what the harness says, and a buyer of the harness. */

let harness: Harness<"base">;
let shop: LoopbackServer;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
  const { facilitator, accepts } = harness.shopConfig("base", 10_000n);
  const server = new x402ResourceServer(new HTTPFacilitatorClient(facilitator)).register(
    "eip155:*",
    new ExactEvmScheme(),
  );
  const app = express();
  app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
  app.get("/report", (_request, response) => response.json({ report: "all is well" }));
  app.get("/free", (_request, response) => response.json({ free: true }));
  shop = await listenOnLoopback(app);
});
beforeEach(() => harness.reset());
afterAll(async () => {
  await shop?.close();
  await harness?.close();
});

test("the buyer pays what the shop asks for, and the harness sees the payment come", async () => {
  const coming = harness.nextPayment();
  const response = await harness.buyer("funded").fetch(`${shop.origin}/report`);
  expect([response.status, await response.json()]).toEqual([200, { report: "all is well" }]);
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(10_000n);
  const { requests } = await coming;
  expect(requests[0]?.operation).toBe("verify");
});

test("a buyer without money stays without goods, and what is free costs nothing", async () => {
  expect((await harness.buyer("empty").fetch(`${shop.origin}/report`)).status).toBe(402);
  const free = await harness.buyer("empty").fetch(`${shop.origin}/free`);
  expect(await free.json()).toEqual({ free: true });
});

test("a payment that does not come is waited for no longer than it was said", async () => {
  await expect(harness.nextPayment({ timeoutMs: 50 })).rejects.toThrow("No payment came within 50 ms");
});

test("time goes to a moment, and not back", async () => {
  const { base } = harness.networks;
  const moment = (await base.now()) + 3_600n;
  expect(await base.advanceTimeTo(moment)).toBeGreaterThanOrEqual(moment);
  await expect(base.advanceTimeTo(new Date(0))).rejects.toThrow("time only goes forward");
});
