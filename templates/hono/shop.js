// A shop that sells a report for a cent, by the public packages. It runs as it is with the facilitator of `x402-kit up`:
//   node --env-file=.env shop.js
// Before it sells for real money: `x402-kit judge shop -- node shop.js` says whether it ever serves for nothing, or charges and does not serve.
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/hono";
import { Hono } from "hono";
import { redeliver } from "../server/redeliver.js";

const { X402_FACILITATOR_URL, X402_API_KEY, X402_CAIP2, X402_PAY_TO, PORT = "3000" } = process.env;
if (!X402_FACILITATOR_URL || !X402_CAIP2 || !X402_PAY_TO) {
  throw new Error("Its settings are missing: node --env-file=.env shop.js");
}
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(X402_CAIP2, new ExactEvmScheme());
const accepts = { scheme: "exact", network: X402_CAIP2, payTo: X402_PAY_TO, price: "$0.01" };

const app = new Hono();
// Hono runs the handler of GET for HEAD as well, and HEAD has no price.
app.use(async (context, next) => {
  if (context.req.method === "HEAD") return context.body(null, 405, { Allow: "GET" });
  return next();
});
app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
app.get("/report", (context) => context.json({ report: "all is well" }));
createServer(redeliver(getRequestListener(app.fetch))).listen(Number(PORT), "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${PORT}/report`),
);
