import { wrapAxiosWithPayment, x402Client } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL, X402_PRIVATE_KEY, X402_CAIP2, X402_ASSET, X402_MAX_AMOUNT } = process.env;
const account = privateKeyToAccount(X402_PRIVATE_KEY);
const client = new x402Client()
  .register(X402_CAIP2, new ExactEvmScheme(account))
  .registerPolicy((_version, offers) =>
    offers.filter(
      ({ asset, amount }) => asset === X402_ASSET && amount && BigInt(amount) <= BigInt(X402_MAX_AMOUNT),
    ),
  );
const response = await wrapAxiosWithPayment(axios.create(), client).get(X402_URL);
console.log(JSON.stringify(response.data));
