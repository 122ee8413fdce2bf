import { buildRequirements } from "../../methods/exact-eip3009/payload.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import { type Asset, formatNetwork, type Network } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { ReceivedPayment } from "./received-payment.ts";

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
