import type { ServerResponse } from "node:http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { UptoEvmScheme } from "@x402/evm/upto/server";
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from "@x402/express";
import express from "express";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { createHarness, type Harness, KitError } from "../../../src/harness/index.ts";
import { type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { decodeHeader } from "../../../src/protocol/payment-headers.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";
import { startStubShop } from "../../support/stub-shop.ts";

/* A shop of the public packages, made with what the harness says, and a buyer of the harness. */

const ownKey = `0x${"0b".repeat(32)}` as const;

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
    "GET /by-usdt": { accepts: harness.shopConfig("base", 10_000n, { asset: "usdt" }).accepts },
    "GET /metered": { accepts: harness.shopConfig("base", 10_000n, { scheme: "upto" }).accepts },
  };
  const app = express();
  app.use(paymentMiddleware(routes, server));
  app.get("/report", (_request, response) => response.json({ report: "all is well" }));
  app.get("/by-permit2", (_request, response) => response.json({ report: "all is well" }));
  app.get("/by-usdt", (_request, response) => response.json({ report: "all is well" }));
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

test("the buyer's answer has what differs between the payment and the offer of a shop that refuses it", async () => {
  let isAgain = false;
  const { url, close } = await startStubShop({
    offer: {
      get maxTimeoutSeconds() {
        return isAgain ? 300 : 60;
      },
    },
    instead({ headers }) {
      isAgain = "payment-signature" in headers;
    },
  });
  onTestFinished(close);
  const response = await harness.buyer("funded").fetch(url);
  expect(response.findings).toMatchObject([
    { mistake: "accepted-differs", at: "maxTimeoutSeconds", got: "60", expected: "300" },
  ]);
  expect([response.status, await response.json()]).toEqual([402, {}]);
});

test("the buyer pays in another token than USDC, where the shop asks for it", async () => {
  const { base } = harness.networks;
  expect((await harness.buyer("funded").fetch(`${shop.origin}/by-usdt`)).status).toBe(200);
  expect(await base.balanceOf(harness.organization.recipient, "usdt")).toBe(10_000n);
  expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
});

test("a payment of which nothing was taken names no transaction, and when it comes again says so", async () => {
  const { settleRequest } = await harness.pay({ network: "base", scheme: "upto", max: 2n, amount: 0n });
  const [settled] = await harness.payments();
  expect(settled).toMatchObject({ transaction: null, ledger: "settled", settle: { outcome: "settled" } });
  expect((await harness.settle(settleRequest)).body).toMatchObject({ situation: "settled_before" });
});

test("scheme upto is not asked for by EIP-3009", () => {
  const ask = () => harness.shopConfig("base", 1n, { scheme: "upto", method: "eip3009" });
  expect(ask).toThrow("Scheme upto is paid by permit2, not by eip3009");
});

test("an amount that is no bigint is named as the guide names it", () => {
  const ask = () => harness.shopConfig("base", 10_000 as never);
  expect(ask).toThrow(expect.objectContaining({ problems: [expect.objectContaining({ name: "amount" })] }));
});

test("a buyer without money stays without goods, and what is free costs nothing", async () => {
  expect((await harness.buyer("empty").fetch(`${shop.origin}/report`)).status).toBe(402);
  const free = await harness.buyer("empty").fetch(`${shop.origin}/free`);
  expect(await free.json()).toEqual({ free: true });
});

test("a payment is sent again, and buys nothing more", async () => {
  const url = `${shop.origin}/report`;
  const headers = await harness.buyer("funded").sign(url);
  const send = async () => (await fetch(url, { headers })).status;
  expect([await send(), await send()]).toEqual([200, 402]);
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(10_000n);
  await expect(harness.buyer("funded").sign(`${shop.origin}/free`)).rejects.toThrow(
    "answers 200, and asks for no payment",
  );
});

test.each([
  ["a viem account", () => privateKeyToAccount(ownKey)],
  ["a private key", () => ownKey],
] as const)("an account of one's own buys as %s, once it has money", async (_, payer) => {
  const { base } = harness.networks;
  const buy = async (path: string) => (await harness.buyer(payer()).fetch(`${shop.origin}${path}`)).status;
  expect(await buy("/report")).toBe(402);
  await base.fund(privateKeyToAccount(ownKey).address, 20_000n);
  expect(await buy("/report")).toBe(200);
  await base.approvePermit2(privateKeyToAccount(ownKey).address);
  expect(await buy("/by-permit2")).toBe(200);
});

test("who is no payer is refused before a shop is asked", () => {
  expect(() => harness.buyer("0x12")).toThrow("The payer is neither a test payer");
});

test("a buyer's payment is valid as long as it is told, and of the version that is asked for", async () => {
  const url = `${shop.origin}/report`;
  const headers = await harness.buyer("funded", { validForSeconds: 7_200 }).sign(url);
  await harness.networks.base.advanceTime(3_600);
  expect((await fetch(url, { headers })).status).toBe(200);
  expect((await harness.buyer("funded", { x402Version: 2 }).fetch(url)).status).toBe(200);
  await expect(harness.buyer("funded", { x402Version: 1 }).fetch(url)).rejects.toThrow(KitError);
});

test("a signed request has its members, to be read and changed", async () => {
  const request = await harness.sign({ network: "base", x402Version: 2 });
  const { asset } = harness.networks.base;
  expect(request.paymentRequirements.asset).toBe(asset.address);
  expect(request.paymentPayload.accepted?.amount).toBe("10000");
  const other = { ...request, paymentRequirements: { ...request.paymentRequirements, amount: "10001" } };
  expect((await harness.verify(other)).body.isValid).toBe(false);
});

test("what a shop asks for is signed by its URL, its header or its body", async () => {
  const url = `${shop.origin}/report`;
  const header = (await fetch(url)).headers.get("payment-required") ?? "";
  for (const challenge of [url, new URL(url), header, decodeHeader(header) as object]) {
    const request = await harness.sign({ challenge });
    expect((await harness.settle(request)).body).toMatchObject({ success: true });
  }
  const wrong = await harness.sign({ challenge: url, payer: "empty" });
  expect((await harness.verify(wrong)).body).toMatchObject({ invalidReason: "insufficient_funds" });
  await expect(harness.sign({ challenge: `${shop.origin}/nothing` })).rejects.toThrow("asks for no payment");
  await expect(harness.sign({ challenge: "" })).rejects.toThrow(KitError);
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

test.each([
  ["does not end", (response: ServerResponse) => void response.write("{")],
  [
    "comes byte by byte",
    (response: ServerResponse) => void setInterval(() => response.write(" "), 200).unref(),
  ],
  [
    "has a gigabyte",
    (response: ServerResponse) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(1 << 20)));
      };
      response.on("drain", more);
      more();
    },
  ],
])("the buyer leaves a shop whose 402 %s", { timeout: 30_000 }, async (_, write) => {
  const endless = await listenOnLoopback((_request, response) => {
    response.writeHead(402, { "content-type": "application/json" });
    write(response);
  });
  onTestFinished(endless.close);
  await expect(harness.buyer("funded").fetch(endless.origin)).rejects.toThrow(KitError);
});
