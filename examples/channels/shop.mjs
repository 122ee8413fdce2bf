import { HTTPFacilitatorClient } from "@x402/core/server";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";

/**
 * A shop whose buyers deposit once and then sign a voucher for each purchase. `facilitator` and `accepts` are those of
 * `harness.shopConfig`. The vouchers are money: in production give the scheme a `storage` that survives a restart.
 */
export function createShop({ facilitator, accepts }) {
  const client = new HTTPFacilitatorClient(facilitator);
  const scheme = new BatchSettlementEvmScheme(accepts.payTo);
  const server = new x402ResourceServer(client).register(accepts.network, scheme);
  const app = express();
  app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
  app.get("/report", (_request, response) => response.json({ report: "all is well" }));
  // Claims what was charged, and has the receiver paid.
  const manager = scheme.createChannelManager(client, accepts.network, accepts.price.asset);
  return { app, manager };
}
