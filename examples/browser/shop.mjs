import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";

/** A shop that sells to pages of another origin. `facilitator` and `accepts` are those of `harness.shopConfig`. */
export function createShop({ facilitator, accepts }, site) {
  const client = new HTTPFacilitatorClient(facilitator);
  const server = new x402ResourceServer(client).register(accepts.network, new ExactEvmScheme());
  const app = express();
  // Before the payment: a preflight pays nothing, and without the exposed headers the page cannot read what to pay.
  app.use((request, response, next) => {
    response.set({
      "Access-Control-Allow-Origin": site,
      "Access-Control-Allow-Headers": "PAYMENT-SIGNATURE, X-PAYMENT, Access-Control-Expose-Headers",
      "Access-Control-Expose-Headers": "PAYMENT-REQUIRED, PAYMENT-RESPONSE",
    });
    if (request.method === "OPTIONS") response.sendStatus(204);
    else next();
  });
  app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
  app.get("/report", (_request, response) => response.json({ report: "all is well" }));
  return app;
}
