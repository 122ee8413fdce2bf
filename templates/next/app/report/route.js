// A report for a cent. Next reads `.env` by itself.
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402, x402ResourceServer } from "@x402/next";
import { NextResponse } from "next/server";

const { X402_FACILITATOR_URL, X402_API_KEY, X402_CAIP2, X402_PAY_TO } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(X402_CAIP2, new ExactEvmScheme());
const accepts = { scheme: "exact", network: X402_CAIP2, payTo: X402_PAY_TO, price: "$0.01" };

export const GET = withX402(async () => NextResponse.json({ report: "all is well" }), { accepts }, server);
