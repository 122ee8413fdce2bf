import axios from "axios";
import { createSigner, withPaymentInterceptor } from "x402-axios";

const { X402_URL, X402_PRIVATE_KEY, X402_NETWORK } = process.env;
const signer = await createSigner(X402_NETWORK, X402_PRIVATE_KEY);
const response = await withPaymentInterceptor(axios.create(), signer).get(X402_URL);
console.log(JSON.stringify(response.data));
