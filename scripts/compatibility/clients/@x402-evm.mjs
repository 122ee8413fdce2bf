import { toClientEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createPublicClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL, X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET, X402_RPC_URL, X402_PURCHASES } = process.env;
const chain = createPublicClient({ transport: http(X402_RPC_URL) });
const signer = toClientEvmSigner(privateKeyToAccount(X402_PRIVATE_KEY), chain);
const client = new x402Client().register(X402_CAIP2, new BatchSettlementEvmScheme(signer));
client.setSpendControls({ allowedAssets: [{ network: X402_CAIP2, asset: X402_ASSET }] });
const pay = wrapFetchWithPayment(fetch, client);
for (let purchase = 1; purchase <= Number(X402_PURCHASES); purchase++) {
  const response = await pay(X402_URL);
  if (!response.ok) throw new Error(`answered ${response.status}`);
  console.log(await response.text());
}
