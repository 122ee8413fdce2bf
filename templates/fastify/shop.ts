// A shop that sells a report for a cent, by the public packages. It runs as it is with the facilitator of `x402-kit up`:
//   node --env-file=.env shop.ts
// Before it sells for real money: `x402-kit judge shop -- node shop.ts` says whether it ever serves for nothing, or charges and does not serve.
import { createServer } from "node:http";
import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import type { Network } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import Fastify from "fastify";
import { redeliver } from "../server/redeliver.ts";
import { requirePayments } from "./payments.ts";

const { X402_FACILITATOR_URL, X402_API_KEY, X402_CAIP2, X402_PAY_TO, PORT = "3000" } = process.env;
if (!X402_FACILITATOR_URL || !X402_CAIP2 || !X402_PAY_TO) {
  throw new Error("Its settings are missing: node --env-file=.env shop.ts");
}
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(X402_CAIP2 as Network, new ExactEvmScheme());
const accepts = { scheme: "exact", network: X402_CAIP2 as Network, payTo: X402_PAY_TO, price: "$0.01" };

const app = Fastify({ serverFactory: (listener) => createServer(redeliver(listener)) });
await requirePayments(app, { "GET /report": { accepts } }, server);
app.get("/report", async () => ({ report: "all is well" }));
await app.listen({ port: Number(PORT), host: "127.0.0.1" });
console.log(`http://127.0.0.1:${PORT}/report`);
