import { serve } from "@hono/node-server";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/hono";
import { Hono } from "hono";

const { PORT, X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO, X402_CAIP2 } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(X402_CAIP2, new ExactEvmScheme());
const accepts = { scheme: "exact", network: X402_CAIP2, payTo: X402_PAY_TO, price: "$0.01" };
const app = new Hono();
app.use(paymentMiddleware({ "GET /report": { accepts }, "GET /other": { accepts } }, server));
app.get("/report", (context) => context.json({ report: "all is well" }));
app.get("/other", (context) => context.json({ other: "all is well" }));
serve({ fetch: app.fetch, port: Number(PORT), hostname: "127.0.0.1" });
