import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express, { type Express } from "express";
import { redeliver } from "./redeliver.ts";

export type ShopOptions = {
  /** Where the facilitator is; ends in `/v1`. */
  facilitatorUrl: string;
  apiKey: string;
  /** The facilitator contract: it forwards what is paid to the shop's own wallet. */
  payTo: string;
};

/** A shop that sells two reports for a cent each, in USDC on base. */
export function createShop({ facilitatorUrl, apiKey, payTo }: ShopOptions): Express {
  const headers = { Authorization: `Bearer ${apiKey}` };
  const facilitator = new HTTPFacilitatorClient({
    url: facilitatorUrl,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  });
  const server = new x402ResourceServer(facilitator).register("eip155:*", new ExactEvmScheme());
  const accepts = { scheme: "exact", network: "eip155:8453", payTo, price: "$0.01" } as const;

  const shop = express();
  // Express runs the handler of GET for HEAD as well, and HEAD has no price.
  shop.use((request, response, next) => {
    if (request.method === "HEAD") response.set("Allow", "GET").sendStatus(405);
    else next();
  });
  shop.use(redeliver());
  shop.use(paymentMiddleware({ "GET /report": { accepts }, "GET /other": { accepts } }, server));
  shop.get("/report", (_request, response) => {
    response.json({ report: "all is well" });
  });
  shop.get("/other", (_request, response) => {
    response.json({ report: "all is well elsewhere" });
  });
  return shop;
}
