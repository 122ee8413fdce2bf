import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { paymentMiddleware } from "x402-hono";

const { PORT, X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO, X402_NETWORK } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = {
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
};
const price = { price: "$0.01", network: X402_NETWORK };
const app = new Hono();
app.use(paymentMiddleware(X402_PAY_TO, { "/report": price, "/other": price }, facilitator));
app.get("/report", (context) => context.json({ report: "all is well" }));
app.get("/other", (context) => context.json({ other: "all is well" }));
serve({ fetch: app.fetch, port: Number(PORT), hostname: "127.0.0.1" });
