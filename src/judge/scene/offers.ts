import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { Authorization } from "../../methods/exact-eip3009/authorization.ts";
import { buildRequirements } from "../../methods/exact-eip3009/eip3009-payload.ts";
import { exactPayloadSchema } from "../../methods/exact-eip3009/eip3009-schemas.ts";
import { type Address, type Hex, keccak256Text, sameAddress } from "../../protocol/hex.ts";
import { type Asset, formatNetwork, type Network } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { createPayerSigner } from "../../published/sign-as.ts";
import { parseJson } from "../../util/json.ts";

/** The payer of one case: its own account, so that transfers can be attributed to the case. */
export type CasePayer = { privateKey: Hex; address: Hex };

/** A recipient that buyers may not pay. */
export const stranger: Hex = `0x${keccak256Text("x402-kit judge: a stranger").slice(26)}`;

/** The payer of a case. The same seed and name give the same key, which anyone can compute: for tests only. */
export function payerOf(seed: number, name: string): CasePayer {
  const privateKey = keccak256Text(`x402-kit judge ${seed}: payer of ${name}`);
  return { privateKey, address: createPayerSigner(privateKey).address };
}

/** The goods of a case, different from those of all other cases. */
export function goodsOf(seed: number, name: string): string {
  return `x402-goods-${keccak256Text(`x402-kit judge ${seed}: goods of ${name}`).slice(2, 26)}`;
}

/** What ways to pay are called in options and reports; all but the last are of scheme “exact”. */
export const wayNames = ["eip3009", "permit2", "upto"] as const;
export type WayName = (typeof wayNames)[number];

/** One way to pay that a shop offers. */
export type Offer = {
  network: Network;
  asset: Asset;
  payTo: Address;
  /** In the asset's smallest unit. */
  amount: bigint;
};

/** The `maxTimeoutSeconds` of every offer. */
const maxTimeoutSeconds = 120;

const description = "what is sold here";

/** An offer as the requirements of one version. */
export function requirementsOf(offer: Offer, x402Version: X402Version, resource: string) {
  return buildRequirements({ ...offer, x402Version, resource, description, maxTimeoutSeconds });
}

/** A 402: version 1 has its terms in the body, version 2 in a header. */
export type Challenge = { headers: Record<string, string>; body: Record<string, unknown> };

/** The 402 for an offer, in one version of the protocol or in both at once. */
export function challengeOf(
  offers: readonly Offer[],
  versions: readonly X402Version[],
  resource: string,
  error: string,
): Challenge {
  const acceptsOf = (version: X402Version) => offers.map((offer) => requirementsOf(offer, version, resource));
  const terms = {
    x402Version: 2,
    error,
    resource: { url: resource, description, mimeType: "application/json" },
    accepts: acceptsOf(2),
  };
  return {
    headers: versions.includes(2) ? { "PAYMENT-REQUIRED": encodeHeader(terms) } : {},
    body: versions.includes(1) ? { x402Version: 1, error, accepts: acceptsOf(1) } : {},
  };
}

/** The offer that a payment was made for; undefined when it fits none. Newer offers are tried first. */
export function offerOf(payment: ReceivedPayment, offers: readonly Offer[]): Offer | undefined {
  const { to, value } = payment.authorization;
  return offers.findLast(
    ({ network, asset, payTo, amount }) =>
      formatNetwork(network, payment.x402Version) === payment.network &&
      sameAddress(payTo, to) &&
      amount === value &&
      (payment.asset === undefined || sameAddress(payment.asset, asset.address)),
  );
}

/** A value as x402 headers carry it: base64 of JSON. */
export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

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
