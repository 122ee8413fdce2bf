import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { KitError } from "../errors.ts";
import { buildPaymentRequest } from "../protocol/build-request.ts";
import { networks } from "../protocol/networks.ts";
import { parsePaymentRequest } from "../protocol/requests.ts";
import { againRoutes } from "./again-routes.ts";
import { createPaymentLog } from "./payment-log.ts";
import { createPaymentStore } from "./payment-store.ts";
import { beginSummary } from "./summary.ts";

test("a capture that cannot be made says why, and what to do", async () => {
  const { base } = networks;
  const parsed = parsePaymentRequest(
    buildPaymentRequest({
      ...{ x402Version: 2, network: base, asset: base.usdc, payTo: base.usdc.address, amount: 1n },
      ...{ resource: "", signature: `0x${"5e".repeat(65)}` },
      authorization: {
        ...{ from: base.usdc.address, to: base.usdc.address, value: 1n, validAfter: 0n },
        ...{ validBefore: 2_000_000_000n, nonce: `0x${"07".repeat(32)}` },
      },
    }),
  );
  if (!parsed.ok) throw new Error("the payment is malformed");
  const { request } = parsed;
  const store = createPaymentStore("the service");
  const log = createPaymentLog(store);
  const app = Fastify();
  onTestFinished(async () => {
    log.close();
    store.close();
    await app.close();
  });
  const stored = { id: request.settlementId, request, messages: [], open: [], times: [], omitted: 0 };
  const hints = ["Capture a payment soon after it was made."];
  againRoutes(app, {
    log: { ...log, find: () => ({ summary: beginSummary(stored), request, timeline: [], omitted: 0 }) },
    contracts: { mainnet: base.usdc.address, testnet: base.usdc.address },
    resend: {
      send: () => Promise.reject(new Error("nothing is sent")),
      describeCurl: () => "",
      capture: () => Promise.reject(new KitError("The state of block 7 of base is gone", { hints })),
      transaction: () => Promise.reject(new KitError("No transaction has carried this payment")),
    },
  });
  const answer = await app.inject({ method: "POST", url: "/payments/0x12/capture" });
  expect(answer.statusCode).toBe(409);
  expect(answer.json()).toEqual({ error: "The state of block 7 of base is gone", hints });
});
