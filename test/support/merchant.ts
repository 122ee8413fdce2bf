import { AsyncLocalStorage } from "node:async_hooks";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { UptoEvmScheme } from "@x402/evm/upto/server";
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from "@x402/express";
import express from "express";
import { type LoopbackServer, listenOnLoopback } from "./loopback-server.ts";

/** The URL of a merchant's facilitator, and the API key for it, if any. */
export type FacilitatorAccess = { url: string; apiKey?: string };

/** The price of a path: the network by its v2 name, and a price in the format of the public server. */
export type Offer = {
  /** "exact" by default. */
  scheme?: "exact" | "upto";
  network: `eip155:${number}`;
  payTo: string;
  price: string | { asset: string; amount: string; extra?: Record<string, string> };
  /** Members that the route adds to `extra` in the requirements. */
  extra?: { assetTransferMethod?: "permit2"; paymentFlow?: "upfront" };
  maxTimeoutSeconds?: number;
  /** Extensions declared to buyers. */
  extensions?: Record<string, unknown>;
  /** For scheme "upto": the final cost of the content, as the public helper takes it: an amount, or a share such as "25%". */
  charge?: string;
};

/** The paid content of every merchant. */
export const goods = { goods: "a paid answer" };

/**
 * Starts a resource server with the public express package, set up as in its documentation. `headersOf` returns headers
 * for calls to the facilitator, by the requested path.
 */
export function startMerchant(...setup: Parameters<typeof createMerchant>): Promise<LoopbackServer> {
  return listenOnLoopback(createMerchant(...setup));
}

/** Like {@link startMerchant}, for another server to listen with. */
export function createMerchant(
  { url, apiKey }: FacilitatorAccess,
  offers: Readonly<Record<string, Offer>>,
  headersOf: (path: string) => Record<string, string> = () => ({}),
) {
  // The public client does not say which request it needs headers for.
  const asked = new AsyncLocalStorage<string>();
  const facilitator = new HTTPFacilitatorClient({
    url,
    createAuthHeaders: async () => {
      const key: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
      const headers = { ...key, ...headersOf(asked.getStore() ?? "") };
      return { verify: headers, settle: headers, supported: key };
    },
  });
  const server = new x402ResourceServer(facilitator)
    .register("eip155:*", new ExactEvmScheme())
    .register("eip155:*", new UptoEvmScheme());
  const routes = Object.fromEntries(
    Object.entries(offers).map(([path, { charge: _, extensions, ...offer }]) => [
      `GET ${path}`,
      { accepts: { scheme: "exact", ...offer }, ...(extensions && { extensions }) },
    ]),
  );
  const app = express();
  app.use(({ url: path = "" }, _response, next) => asked.run(path, next));
  app.use(paymentMiddleware(routes, server));
  for (const [path, { charge }] of Object.entries(offers)) {
    app.get(path, (_request, response) => {
      if (charge !== undefined) setSettlementOverrides(response, { amount: charge });
      response.json(goods);
    });
  }
  return app;
}
