import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL, X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET, X402_MAX_AMOUNT } = process.env;
const client = new x402Client().register(
  X402_CAIP2,
  new ExactEvmScheme(privateKeyToAccount(X402_PRIVATE_KEY)),
);
client.setSpendControls({
  allowedAssets: [{ network: X402_CAIP2, asset: X402_ASSET, maxAmountPerPayment: X402_MAX_AMOUNT }],
});
const response = await wrapFetchWithPayment(fetch, client)(X402_URL);
console.log(await response.text());
process.exitCode = response.ok ? 0 : 1;
