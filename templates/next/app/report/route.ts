// A report for a cent, by the public packages. Next reads `.env` by itself.
// Before it sells for real money: `x402-kit judge shop --url http://127.0.0.1:3000/report` says when these packages charge and do not serve.
import { HTTPFacilitatorClient } from "@x402/core/server";
import type { Network } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402, x402ResourceServer } from "@x402/next";
import { NextResponse } from "next/server";

const { X402_FACILITATOR_URL, X402_API_KEY, X402_CAIP2, X402_PAY_TO } = process.env;
if (!X402_FACILITATOR_URL || !X402_CAIP2 || !X402_PAY_TO) throw new Error("Settings are missing in .env");
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
  url: X402_FACILITATOR_URL,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(X402_CAIP2 as Network, new ExactEvmScheme());
const accepts = { scheme: "exact", network: X402_CAIP2 as Network, payTo: X402_PAY_TO, price: "$0.01" };

export const GET = withX402(async () => NextResponse.json({ report: "all is well" }), { accepts }, server);

// Without it Next runs the handler of GET for HEAD as well.
export const HEAD = () => new Response(null, { status: 405, headers: { Allow: "GET" } });
