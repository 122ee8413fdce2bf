import { wrapAxiosWithPayment, x402Client } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";

const { X402_URL, X402_PRIVATE_KEY, X402_CAIP2 } = process.env;
const client = new x402Client().register(X402_CAIP2, new ExactEvmScheme(privateKeyToAccount(X402_PRIVATE_KEY)));
const response = await wrapAxiosWithPayment(axios.create(), client).get(X402_URL);
console.log(JSON.stringify(response.data));
