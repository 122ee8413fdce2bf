import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { UptoEvmScheme } from "@x402/evm/upto/server";
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from "@x402/express";
import express from "express";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { type TestPayerName, testPayers } from "../../../src/published/test-payers.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";

/* A shop of the public packages, made with what the harness says, and a buyer of the harness. */

let harness: Harness<"base">;
let shop: LoopbackServer;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
  const { facilitator, accepts } = harness.shopConfig("base", 10_000n);
  const server = new x402ResourceServer(new HTTPFacilitatorClient(facilitator))
    .register("eip155:*", new ExactEvmScheme())
    .register("eip155:*", new UptoEvmScheme());
  const routes = {
    "GET /report": { accepts },
    "GET /by-permit2": { accepts: harness.shopConfig("base", 10_000n, { method: "permit2" }).accepts },
    "GET /metered": { accepts: harness.shopConfig("base", 10_000n, { scheme: "upto" }).accepts },
  };
  const app = express();
  app.use(paymentMiddleware(routes, server));
  app.get("/report", (_request, response) => response.json({ report: "all is well" }));
  app.get("/by-permit2", (_request, response) => response.json({ report: "all is well" }));
  app.get("/metered", (_request, response) => {
    setSettlementOverrides(response, { amount: "1858" });
    response.json({ report: "all is well" });
  });
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

test.each([
  ["/by-permit2", 10_000n],
  ["/metered", 1_858n],
])("the buyer pays %s by Permit2, once it is approved", async (path, charged) => {
  const { base } = harness.networks;
  const buy = async (payer: TestPayerName) =>
    (await harness.buyer(payer).fetch(`${shop.origin}${path}`)).status;
  const paid = () => base.balanceOf(harness.organization.recipient);
  expect(await buy("funded")).toBe(200);
  expect(await paid()).toBe(charged);
  // As the public server says that the approval is missing.
  expect(await buy("unapproved")).toBe(412);
  await base.approvePermit2(testPayers.unapproved.address, 10_000n);
  expect(await buy("unapproved")).toBe(200);
  expect(await paid()).toBe(2n * charged);
  await base.approvePermit2(testPayers.unapproved.address, 0n);
  expect(await buy("unapproved")).toBe(412);
});

test("a payment of which nothing was taken names no transaction, and when it comes again says so", async () => {
  const { settleRequest } = await harness.pay({ network: "base", scheme: "upto", max: 2n, amount: 0n });
  const [settled] = await harness.payments();
  expect(settled).toMatchObject({ transaction: null, ledger: "settled", settle: { outcome: "settled" } });
  expect((await harness.settle(settleRequest)).body).toMatchObject({ situation: "settled_before" });
});

test("scheme upto is not asked for by EIP-3009", () => {
  const ask = () => harness.shopConfig("base", 1n, { scheme: "upto", method: "eip3009" });
  expect(ask).toThrow("Scheme upto is paid by Permit2 alone");
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
