import express from "express";
import { paymentMiddleware } from "x402-express";

const { PORT, X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO, X402_NETWORK } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = {
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
};
const price = { price: "$0.01", network: X402_NETWORK };
const app = express();
app.use(paymentMiddleware(X402_PAY_TO, { "/report": price, "/other": price }, facilitator));
app.get("/report", (_request, response) => response.json({ report: "all is well" }));
app.get("/other", (_request, response) => response.json({ other: "all is well" }));
app.listen(Number(PORT), "127.0.0.1");
