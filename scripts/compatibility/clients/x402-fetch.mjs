import { createSigner, wrapFetchWithPayment } from "x402-fetch";

const { X402_URL, X402_PRIVATE_KEY, X402_NETWORK, X402_MAX_AMOUNT } = process.env;
const signer = await createSigner(X402_NETWORK, X402_PRIVATE_KEY);
const response = await wrapFetchWithPayment(fetch, signer, BigInt(X402_MAX_AMOUNT))(X402_URL);
console.log(await response.text());
process.exitCode = response.ok ? 0 : 1;
