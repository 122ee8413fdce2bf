import { buildPaymentRequest, type PaymentParts } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import { parsePaymentRequest } from "../../src/methods/methods.ts";
import { testPayers } from "../../src/payer/test-payers.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import { networks } from "../../src/protocol/networks.ts";
import type { PaymentRequest } from "../../src/protocol/requests.ts";

type Changes = Partial<Omit<PaymentParts, "authorization">> & { nonce?: Hex };

/** The body of a request with a well-formed payment, on base by default. Only the length of its signature is right. */
export function exampleBody({ nonce = `0x${"01".repeat(32)}`, ...changes }: Changes = {}) {
  const network = networks.base;
  const amount = changes.amount ?? 10_000n;
  const payTo = changes.payTo ?? "0x00000000000000000000000000000000000000F0";
  return buildPaymentRequest({
    ...{
      x402Version: 1,
      network,
      asset: network.usdc,
      payTo,
      amount,
      resource: "https://shop.example/report",
    },
    authorization: {
      ...{ from: testPayers.funded.address, to: payTo, value: amount },
      ...{ validAfter: 0n, validBefore: 2_000_000_000n, nonce },
    },
    signature: `0x${"02".repeat(65)}`,
    ...changes,
  });
}

/** Parses a body as the service does; throws if it is malformed. */
export function parseBody(body: unknown): PaymentRequest {
  const parsed = parsePaymentRequest(body);
  if (!parsed.ok) throw new Error(`the payment is malformed: ${parsed.invalid.message}`);
  return parsed.request;
}

/** The payment of {@link exampleBody}, as the service parses it. */
export const examplePayment = (changes?: Changes): PaymentRequest => parseBody(exampleBody(changes));
