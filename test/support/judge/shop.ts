import { createServer, type ServerResponse } from "node:http";
import { membersOf, parseJson } from "../../../src/util/json.ts";

/*
 * Shops for `judge shop`, for protocol version 1. The first argument says how they behave:
 * - good: serves once per payment, and delivers undelivered goods when that payment is sent again;
 * - trusting: verifies and serves, and never settles;
 * - asks-once: asks its facilitator about the first payment, and accepts all others;
 * - greedy: settles, and serves nothing;
 * - curt: good, but without receipts, and with 500 for unreadable payments;
 * - and those that do not work: ends, mute, free-of-charge, and astray, which uses another facilitator.
 */

const manner = process.argv[2] ?? "good";
const { PORT, X402_FACILITATOR_URL = "", X402_API_KEY = "", X402_PAY_TO = "", X402_PRICE = "" } = process.env;
const { X402_NETWORK, X402_ASSET, X402_ASSET_NAME, X402_ASSET_VERSION } = process.env;

if (manner === "ends") {
  console.error("cannot open the shop");
  process.exit(4);
}
const requirements = {
  scheme: "exact",
  network: X402_NETWORK,
  maxAmountRequired: X402_PRICE,
  resource: "http://127.0.0.1/report",
  description: "",
  mimeType: "application/json",
  payTo: X402_PAY_TO,
  maxTimeoutSeconds: 60,
  asset: X402_ASSET,
  extra: { name: X402_ASSET_NAME, version: X402_ASSET_VERSION },
};

let hasAsked = false;

/** The receipts of settled but undelivered payments, by URL and payment. */
const owed = new Map<string, string>();

createServer(async (request, response) => {
  const { "x-payment": payment } = request.headers;
  if (manner === "mute") return;
  if (manner === "free-of-charge") return serve(response);
  if (typeof payment !== "string") return ask(response, "a payment is required");
  const key = `${request.url} ${payment}`;
  const receipt = owed.get(key);
  if (manner === "astray") return ask(response, "not settled");
  if (receipt !== undefined) {
    owed.delete(key);
    return serve(response, receipt);
  }
  const paymentPayload = parseJson(Buffer.from(payment, "base64").toString("utf8"));
  if (paymentPayload === undefined) {
    if (manner === "curt") return response.writeHead(500).end();
    return ask(response, "invalid_payload");
  }
  const body = { x402Version: 1, paymentPayload, paymentRequirements: requirements };
  if (manner === "trusting") {
    return (await call("verify", body))?.isValid === true ? serve(response) : ask(response, "invalid");
  }
  if (manner === "asks-once" && hasAsked) return serve(response);
  hasAsked = true;
  const settled = await call("settle", body);
  if (settled?.success !== true) return ask(response, "not settled");
  if (manner === "greedy") return ask(response, "thank you");
  const settledReceipt = Buffer.from(JSON.stringify(settled)).toString("base64");
  if (response.closed) owed.set(key, settledReceipt);
  else serve(response, manner === "curt" ? undefined : settledReceipt);
}).listen(Number(PORT), "127.0.0.1");

function ask(response: ServerResponse, error: string): void {
  const body = JSON.stringify({ x402Version: 1, error, accepts: [requirements] });
  response.writeHead(402, { "content-type": "application/json" }).end(body);
}

function serve(response: ServerResponse, receipt?: string): void {
  if (receipt !== undefined) response.setHeader("X-PAYMENT-RESPONSE", receipt);
  response.end("the goods");
}

async function call(operation: string, body: object): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const answer = await fetch(`${X402_FACILITATOR_URL}/${operation}`, {
      method: "POST",
      headers: { authorization: `Bearer ${X402_API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return answer.ok ? membersOf(parseJson(await answer.text())) : undefined;
  } catch {
    return undefined;
  }
}
