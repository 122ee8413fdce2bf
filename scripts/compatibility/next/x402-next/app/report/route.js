import { NextResponse } from "next/server";
import { withX402 } from "x402-next";

const { X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO, X402_NETWORK } = process.env;
const headers = { Authorization: `Bearer ${X402_API_KEY}` };
export const GET = withX402(
  async () => NextResponse.json({ report: "all is well" }),
  X402_PAY_TO,
  { price: "$0.01", network: X402_NETWORK },
  {
    url: X402_FACILITATOR_URL,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  },
);
