import { AsyncLocalStorage } from "node:async_hooks";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { type LoopbackServer, listenOnLoopback } from "./loopback-server.ts";

/** The URL of a merchant's facilitator, and the API key for it, if any. */
export type FacilitatorAccess = { url: string; apiKey?: string };

/** What a path costs: the network by its v2 name, and a price as the public server takes it. */
export type Offer = {
  network: `eip155:${number}`;
  payTo: string;
  price: string | { asset: string; amount: string; extra: { name: string; version: string } };
};

/** The paid content of every merchant. */
export const goods = { goods: "a paid answer" };

/**
 * Starts a resource server of the public express package, set up as in its documentation. `headersOf` gives headers of the
 * calls to the facilitator, by the path that is asked for.
 */
export function startMerchant(
  { url, apiKey }: FacilitatorAccess,
  offers: Readonly<Record<string, Offer>>,
  headersOf: (path: string) => Record<string, string> = () => ({}),
): Promise<LoopbackServer> {
  // The public client does not say which request its headers are for.
  const asked = new AsyncLocalStorage<string>();
  const facilitator = new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => {
      const key: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
      const headers = { ...key, ...headersOf(asked.getStore() ?? "") };
      return { verify: headers, settle: headers, supported: key };
    },
  });
  const server = new x402ResourceServer(facilitator).register("eip155:*", new ExactEvmScheme());
  const routes = Object.fromEntries(
    Object.entries(offers).map(([path, offer]) => [
      `GET ${path}`,
      { accepts: { scheme: "exact", ...offer } },
    ]),
  );
  const app = express();
  app.use(({ url: path = "" }, _response, next) => asked.run(path, next));
  app.use(paymentMiddleware(routes, server));
  for (const path of Object.keys(offers)) app.get(path, (_request, response) => response.json(goods));
  return listenOnLoopback(app);
}
