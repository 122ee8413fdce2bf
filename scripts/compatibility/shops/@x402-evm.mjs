import { HTTPFacilitatorClient } from "@x402/core/server";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";

const { PORT, X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO, X402_CAIP2, X402_ASSET } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const scheme = new BatchSettlementEvmScheme(X402_PAY_TO);
const server = new x402ResourceServer(facilitator).register(X402_CAIP2, scheme);
const accepts = { scheme: "batch-settlement", network: X402_CAIP2, payTo: X402_PAY_TO, price: "$0.01" };
const app = express();
app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
app.get("/report", (_request, response) => response.json({ report: "all is well" }));
app.listen(Number(PORT), "127.0.0.1");
const times = { claimIntervalSecs: Number(process.env.X402_CLAIM_SECONDS), settleIntervalSecs: 60 };
scheme.createChannelManager(facilitator, X402_CAIP2, X402_ASSET).start(times);
