import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { Authorization } from "../../methods/exact-eip3009/authorization.ts";
import { exactPayloadSchema } from "../../methods/exact-eip3009/payload-schema.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { parseJson } from "../../util/json.ts";

/** A payment read from a header. */
export type ReceivedPayment = {
  x402Version: X402Version;
  /** The payload as the buyer wrote it. */
  payload: unknown;
  network: string;
  /** Only version 2 names it. */
  asset: string | undefined;
  authorization: Authorization;
  signature: Hex;
};

const paymentV1 = z.object({ x402Version: z.literal(1), network: z.string(), payload: exactPayloadSchema });
const paymentV2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({ network: z.string(), asset: z.string() }),
  payload: exactPayloadSchema,
});

/** The payment in the headers of a request: undefined without one, "unreadable" when it is malformed. */
export function readPayment(headers: IncomingHttpHeaders): ReceivedPayment | "unreadable" | undefined {
  const text = headers["payment-signature"] ?? headers["x-payment"];
  if (text === undefined) return undefined;
  const payload = decodeHeader(String(text));
  const v1 = paymentV1.safeParse(payload).data;
  if (v1 !== undefined) {
    return { x402Version: 1, payload, network: v1.network, asset: undefined, ...v1.payload };
  }
  const v2 = paymentV2.safeParse(payload).data;
  return v2 === undefined ? "unreadable" : { x402Version: 2, payload, ...v2.accepted, ...v2.payload };
}

/** A payment in a line of the report: its number, amount and recipient. */
export function describePayment({
  number,
  amount,
  to,
  network,
}: {
  number: number;
  amount: bigint;
  to: string;
  network: string;
}): string {
  return `with payment ${number}: ${amount} to ${to.slice(0, 8)}… on ${network}`;
}

/** Decodes a header of base64-encoded JSON; undefined when it is malformed. */
export function decodeHeader(text: string): unknown {
  return parseJson(Buffer.from(text, "base64").toString("utf8"));
}
