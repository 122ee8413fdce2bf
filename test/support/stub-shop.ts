import type { IncomingMessage, ServerResponse } from "node:http";
import { localContracts } from "../../src/payer/local-chains.ts";
import { networks } from "../../src/protocol/networks.ts";
import { encodeHeader } from "../../src/protocol/payment-headers.ts";
import { type LoopbackServer, listenOnLoopback } from "./loopback-server.ts";

type Json = Record<string, unknown>;

/** How a shop differs from a good one. */
export type StubShop = {
  /** Members that replace those in its offer; undefined removes one. */
  offer?: Json;
  extra?: Json;
  /** Additional members of its challenge. */
  challenge?: Json;
  x402Version?: 1 | 2;
  /** Encodes its version 2 challenge for PAYMENT-REQUIRED; undefined for a 402 without that header. */
  encode?: (challenge: Json) => string | undefined;
  /** True if the challenge is in the body, whatever its version. */
  isInBody?: boolean;
  /** Headers of every response; correct CORS headers by default. */
  cors?: Record<string, string>;
  /** Answers instead of the shop; true if it has answered. */
  instead?: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined;
};

const cors = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE",
  "Access-Control-Allow-Headers": "payment-signature, x-payment",
};

/** The offer of a good shop on base. */
export function offerOf({ x402Version = 2, offer, extra }: StubShop, url: string): Json {
  const { usdc } = networks.base;
  const amount =
    x402Version === 2
      ? { network: "eip155:8453", amount: "10000" }
      : { network: "base", maxAmountRequired: "10000", resource: url, description: "", mimeType: "" };
  return {
    scheme: "exact",
    ...amount,
    asset: usdc.address,
    payTo: localContracts.mainnet,
    maxTimeoutSeconds: 60,
    extra: { name: usdc.name, version: usdc.version, ...extra },
    ...offer,
  };
}

/** Answers every request for /report, in any spelling, with the current shop's 402. */
export function answerAsShop(shopNow: () => StubShop) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const shop = shopNow();
    const { x402Version = 2, challenge, instead, encode = encodeHeader } = shop;
    for (const [name, value] of Object.entries(shop.cors ?? cors)) response.setHeader(name, value);
    if (await instead?.(request, response)) return undefined;
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    const isSold = decodeURIComponent(request.url ?? "")
      .toLowerCase()
      .includes("report");
    if (!isSold) return response.writeHead(404).end("there is no such thing");
    const url = `http://${request.headers.host}/report`;
    const value: Json = {
      x402Version,
      error: "a payment is needed",
      ...(x402Version === 2 && { resource: { url, description: "", mimeType: "" } }),
      accepts: [offerOf(shop, url)],
      ...challenge,
    };
    const isInBody = shop.isInBody ?? x402Version === 1;
    const header = isInBody ? undefined : encode(value);
    if (header !== undefined) response.setHeader("PAYMENT-REQUIRED", header);
    response.writeHead(402, { "content-type": "application/json" });
    return response.end(JSON.stringify(isInBody ? value : {}));
  };
}

/** A shop without a facilitator; see {@link answerAsShop}. */
export async function startStubShop(shop: StubShop = {}): Promise<LoopbackServer & { url: string }> {
  const server = await listenOnLoopback(answerAsShop(() => shop));
  return { ...server, url: `${server.origin}/report` };
}
