// A buyer by the public packages, who pays a cent at most, on one network, with one token: node --env-file=.env buyer.js
// `x402-kit judge client -- node buyer.js` says what these packages do when an answer is lost or leads elsewhere.
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL = "http://127.0.0.1:3000/report", X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET } = process.env;
const { X402_MAX_AMOUNT = "10000" } = process.env; // in the token's smallest unit: 0.01 USDC
const client = new x402Client().register(
  X402_CAIP2,
  new ExactEvmScheme(privateKeyToAccount(X402_PRIVATE_KEY)),
);
client.setSpendControls({
  allowedAssets: [{ network: X402_CAIP2, asset: X402_ASSET, maxAmountPerPayment: X402_MAX_AMOUNT }],
});
const response = await wrapFetchWithPayment(fetch, client)(X402_URL);
console.log(await response.text());
if (!response.ok) console.error(`HTTP ${response.status}: not bought. npx x402-facilitator-kit why`);
process.exitCode = response.ok ? 0 : 1;
