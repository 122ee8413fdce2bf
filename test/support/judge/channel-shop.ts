import { createServer } from "node:http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { BatchSettlementEvmScheme, InMemoryChannelStorage } from "@x402/evm/batch-settlement/server";
import { FileChannelStorage } from "@x402/evm/batch-settlement/server/file-storage";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";

/*
 * The public packages' shop for `judge shop --ways batch-settlement`, unmodified. The first argument selects where it
 * keeps its channels: in files, or otherwise in memory, as by default. With "unclaimed" it also never claims.
 */

const manner = process.argv[2] ?? "files";
const { PORT, X402_FACILITATOR_URL = "", X402_API_KEY = "", X402_PAY_TO = "", X402_PRICE = "" } = process.env;
const { X402_CAIP2 = "", X402_ASSET = "", X402_ASSET_NAME, X402_ASSET_VERSION } = process.env;
const { X402_STORAGE = "", X402_CLAIM_SECONDS = "" } = process.env;

const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const network = X402_CAIP2 as `eip155:${number}`;
const [payTo, asset] = [X402_PAY_TO, X402_ASSET] as `0x${string}`[] as [`0x${string}`, `0x${string}`];
const storage =
  manner === "files" ? new FileChannelStorage({ directory: X402_STORAGE }) : new InMemoryChannelStorage();
const scheme = new BatchSettlementEvmScheme(payTo, { storage });
const extra = { name: X402_ASSET_NAME, version: X402_ASSET_VERSION };
const accepts = {
  ...{ scheme: "batch-settlement", network, payTo },
  price: { asset, amount: X402_PRICE, extra },
} as const;

const app = express();
const server = new x402ResourceServer(facilitator).register(network, scheme);
app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
app.get("/:what", (_request, response) => void response.end("the goods"));
createServer(app).listen(Number(PORT), "127.0.0.1");
if (manner !== "unclaimed") {
  const claimIntervalSecs = Number(X402_CLAIM_SECONDS);
  scheme
    .createChannelManager(facilitator, network, asset)
    .start({ claimIntervalSecs, settleIntervalSecs: 60 });
}
