// A buyer by the public packages, who pays a cent at most, on one network, with one token: node --env-file=.env buyer.js
// `x402-kit judge client -- node buyer.js` tries it with thirty kinds of trouble.
import { setTimeout } from "node:timers/promises";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL = "http://127.0.0.1:3000/report", X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET } = process.env;
const { X402_MAX_AMOUNT = "10000" } = process.env; // in the token's smallest unit: 0.01 USDC
if (!X402_PRIVATE_KEY || !X402_CAIP2 || !X402_ASSET) {
  throw new Error("Its settings are missing: node --env-file=.env buyer.js");
}

/** Signs for ten minutes at most, however long the shop asks for: until then the shop can take the payment. */
class CappedScheme extends ExactEvmScheme {
  createPaymentPayload(version, requirements, context) {
    const maxTimeoutSeconds = Math.min(requirements.maxTimeoutSeconds, 600);
    return super.createPaymentPayload(version, { ...requirements, maxTimeoutSeconds }, context);
  }
}

/** Sends a payment to nobody but the shop, and again while its fate is unknown: one payment can be taken once only. */
const fetchCarefully = async (input, init) => {
  const request = new Request(input, init);
  if (!request.headers.has("PAYMENT-SIGNATURE") && !request.headers.has("X-PAYMENT")) return fetch(request);
  for (let triesLeft = 3; ; triesLeft--) {
    let wait = 1;
    try {
      const response = await fetch(request.clone(), { redirect: "manual" });
      const body = await response.arrayBuffer();
      const isOpen = response.status === 402 || response.status >= 500;
      if (!isOpen || triesLeft === 0) return new Response(body, response);
      wait = Math.min(Number(response.headers.get("Retry-After")) || 1, 10);
    } catch (error) {
      if (triesLeft === 0) throw error;
    }
    await setTimeout(wait * 1_000);
  }
};

let notYet = "Not bought";
const client = new x402Client()
  .register(X402_CAIP2, new CappedScheme(privateKeyToAccount(X402_PRIVATE_KEY)))
  .onAfterPaymentCreation(async ({ paymentPayload }) => {
    const { authorization, permit2Authorization } = paymentPayload.payload;
    const seconds = authorization?.validBefore ?? permit2Authorization?.deadline;
    notYet = `Not bought yet; it can still be taken until ${new Date(Number(seconds) * 1_000).toISOString()}`;
  });
client.setSpendControls({
  allowedAssets: [{ network: X402_CAIP2, asset: X402_ASSET, maxAmountPerPayment: X402_MAX_AMOUNT }],
});
try {
  const response = await wrapFetchWithPayment(fetchCarefully, client)(X402_URL);
  const body = await response.text();
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${body}`);
  console.log(body);
} catch (error) {
  console.error(`${error.message}\n${notYet}. More: npx --no-install x402-kit why`);
  process.exitCode = 1;
}
