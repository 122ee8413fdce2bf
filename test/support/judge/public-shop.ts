import { createServer } from "node:http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { UptoEvmScheme } from "@x402/evm/upto/server";
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from "@x402/express";
import express from "express";

/*
 * The public packages' shops for `judge shop`, for protocol version 2 and paid by Permit2. The first argument selects:
 * - permit2: scheme "exact";
 * - metered: scheme "upto", charging a quarter of the maximum; free: charging nothing;
 * - overcharging: metered, but its receipts name half of what was charged.
 */

const manner = process.argv[2] ?? "metered";
const { PORT, X402_FACILITATOR_URL = "", X402_API_KEY = "", X402_PAY_TO = "", X402_PRICE = "" } = process.env;
const { X402_CAIP2 = "", X402_ASSET = "", X402_ASSET_NAME, X402_ASSET_VERSION } = process.env;

const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator)
  .register("eip155:*", new ExactEvmScheme())
  .register("eip155:*", new UptoEvmScheme());
const isExact = manner === "permit2";
const accepts = {
  scheme: isExact ? "exact" : "upto",
  network: X402_CAIP2 as `eip155:${number}`,
  payTo: X402_PAY_TO,
  price: {
    asset: X402_ASSET,
    amount: X402_PRICE,
    extra: { name: X402_ASSET_NAME, version: X402_ASSET_VERSION },
  },
  ...(isExact && { extra: { assetTransferMethod: "permit2" } }),
};

const app = express();
if (manner === "overcharging") {
  app.use((_request, response, next) => {
    const setHeader = response.setHeader.bind(response);
    response.setHeader = (name, value) =>
      setHeader(name, name.toUpperCase() === "PAYMENT-RESPONSE" ? halve(String(value)) : value);
    next();
  });
}
app.use(paymentMiddleware({ "GET /report": { accepts }, "GET /other": { accepts } }, server));
app.get("/:what", (_request, response) => {
  if (!isExact) setSettlementOverrides(response, { amount: manner === "free" ? "0" : "25%" });
  response.end("the goods");
});
createServer(app).listen(Number(PORT), "127.0.0.1");

/** A receipt with half of the amount. */
function halve(receipt: string): string {
  const settled = JSON.parse(Buffer.from(receipt, "base64").toString("utf8"));
  const amount = `${BigInt(settled.amount) / 2n}`;
  return Buffer.from(JSON.stringify({ ...settled, amount })).toString("base64");
}
