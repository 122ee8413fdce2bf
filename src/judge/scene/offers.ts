import type { IncomingHttpHeaders } from "node:http";
import { buildRequirements } from "../../methods/build-request.ts";
import type { Method } from "../../methods/method.ts";
import { methodOf, parsePaymentRequest } from "../../methods/methods.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { checkClaimed } from "../../protocol/checks.ts";
import { type Address, type Hex, keccak256Text } from "../../protocol/hex.ts";
import { type Asset, addToBuiltIn, type Network } from "../../protocol/networks.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import type { Operation } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { type HttpAnswer, sendHttp } from "../../util/http-client.ts";
import { membersOf } from "../../util/json.ts";

/** The payer of one case: its own account, so that transfers can be attributed to the case. */
export type CasePayer = { privateKey: Hex; address: Hex };

/** A recipient that buyers may not pay. */
export const stranger: Hex = `0x${keccak256Text("x402-kit judge: a stranger").slice(26)}`;

/** The payer of a case. The same seed and name give the same key, which anyone can compute: for tests only. */
export function payerOf(seed: number, name: string): CasePayer {
  const privateKey = keccak256Text(`x402-kit judge ${seed}: payer of ${name}`);
  return { privateKey, address: createPayerSigner(privateKey).address };
}

/** The goods of a case, distinct from those of all other cases. */
export function goodsOf(seed: number, name: string): string {
  return `x402-goods-${keccak256Text(`x402-kit judge ${seed}: goods of ${name}`).slice(2, 26)}`;
}

/** One payment method that a shop offers. */
export type Offer = {
  method: Method;
  network: Network;
  asset: Asset;
  payTo: Address;
  /** Where the payer's tokens go; usually `payTo`. */
  receiver: Address;
  /** In the asset's smallest unit; for "upto" the maximum. */
  amount: bigint;
  /** The network's facilitator contract, which submits "upto" payments. */
  facilitator: Address;
};

/** The `maxTimeoutSeconds` of every offer. */
export const maxTimeoutSeconds = 120;

const description = "what is sold here";

export function requirementsOf(offer: Offer, x402Version: X402Version, resource: string) {
  const { scheme, extra: extraOn } = offer.method;
  const { network, asset, facilitator: facilitatorContract } = offer;
  const extra = extraOn({ ...network, facilitatorContract, assets: [asset] }) ?? {};
  return buildRequirements({
    ...offer,
    x402Version,
    resource,
    description,
    maxTimeoutSeconds,
    scheme,
    extra,
  });
}

/** A 402 response: version 1 has its terms in the body, version 2 in a header. */
type Challenge = { headers: Record<string, string>; body: Record<string, unknown> };

/** The 402 for offers, in one version of the protocol or in both at once. */
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

/** A payment that arrived in a header. */
export type ReceivedPayment = {
  signed: SignedPayment;
  /** The network, as the buyer wrote it. */
  network: string;
  x402Version: X402Version;
  /** The offer that it pays, or the closest one. */
  offer: Offer;
  /** The body of the settle call. */
  body: string;
  /** How it deviates from that offer; undefined if it matches. */
  misfit: Invalid | undefined;
};

/**
 * Reads the payment in a request's headers as the facilitator would. Returns undefined if there is none, and the reason
 * if it cannot be read.
 *
 * @param offers the offers made so far, all for one payment method; the newest is tried first
 */
export function readPayment(
  headers: IncomingHttpHeaders,
  offers: readonly [Offer, ...Offer[]],
  resource: string,
): ReceivedPayment | Invalid | undefined {
  const text = headers["payment-signature"] ?? headers["x-payment"];
  if (text === undefined) return undefined;
  const paymentPayload = decodeHeader(String(text));
  const tried = offers.toReversed().map((offer) => readFor(offer, paymentPayload, resource));
  const read = tried.filter((one) => "signed" in one);
  return read.find(({ misfit }) => misfit === undefined) ?? read[0] ?? tried[0];
}

function readFor(offer: Offer, paymentPayload: unknown, resource: string): ReceivedPayment | Invalid {
  const { network, asset, facilitator: facilitatorContract, method } = offer;
  const x402Version = membersOf(paymentPayload).x402Version === 1 ? 1 : 2;
  const paymentRequirements = requirementsOf(offer, x402Version, resource);
  const body = { x402Version, paymentPayload, paymentRequirements };
  const parsed = parsePaymentRequest(body, addToBuiltIn([network]));
  if (!parsed.ok) return parsed.invalid;
  const { payment: signed } = parsed.request;
  if (signed.method !== method.name) {
    return refusals.assetPaidOtherwise(asset.address, methodOf(signed).transfer, [method.transfer]);
  }
  const served = { ...network, facilitatorContract, assets: [asset] };
  const misfit = checkClaimed(parsed.request, served, { method, operation: "verify" });
  const written = { network: parsed.request.network, x402Version } as const;
  return { ...written, signed, offer, body: JSON.stringify(body), misfit };
}

/** Asks the facilitator to verify or settle. */
export function postPayment(
  operation: Operation,
  facilitatorUrl: string,
  apiKey: string,
  body: string,
): Promise<HttpAnswer> {
  return sendHttp(`${facilitatorUrl}/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body,
  });
}
