import { type LoopbackServer, listenOnLoopback } from "./loopback-server.ts";
import type { FacilitatorAccess } from "./merchant.ts";
import { goods } from "./merchant.ts";

/** The price of a path, as v1 servers state it. */
export type V1Offer = {
  network: string;
  payTo: string;
  asset: string;
  maxAmountRequired: string;
  extra: { name: string; version: string };
};

/**
 * Starts a resource server for protocol v1, which the public packages no longer include. It makes the same calls as the
 * v1 middlewares did: verify, prepare the content, settle. A failure is answered with 402 and the reason.
 */
export function startV1Merchant(
  access: FacilitatorAccess,
  offers: Readonly<Record<string, V1Offer>>,
): Promise<LoopbackServer> {
  return listenOnLoopback(async (request, response) => {
    const path = request.url ?? "";
    const offer = offers[path];
    const send = (status: number, body: unknown, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body));
    if (offer === undefined) return send(404, {});

    const paymentRequirements = {
      scheme: "exact",
      ...offer,
      resource: `http://${request.headers.host}${path}`,
      description: "",
      mimeType: "application/json",
      maxTimeoutSeconds: 60,
      outputSchema: { input: { type: "http", method: "GET", discoverable: true } },
    };
    const ask = (error: string) => send(402, { x402Version: 1, error, accepts: [paymentRequirements] });

    const header = request.headers["x-payment"];
    if (typeof header !== "string") return ask("X-PAYMENT header is required");
    const paymentPayload: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const body = { x402Version: 1, paymentPayload, paymentRequirements };
    try {
      const verdict = await call(access, "verify", body);
      if (verdict.isValid !== true) return ask(String(verdict.invalidReason));
      const outcome = await call(access, "settle", body);
      if (outcome.success !== true) return ask(String(outcome.errorReason));
      const receipt = Buffer.from(JSON.stringify(outcome)).toString("base64");
      return send(200, goods, { "X-PAYMENT-RESPONSE": receipt });
    } catch (error) {
      return ask(String(error));
    }
  });
}

async function call(
  { url, apiKey }: FacilitatorAccess,
  operation: "verify" | "settle",
  body: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/${operation}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}
