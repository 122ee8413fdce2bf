import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { buildRequirements } from "../../methods/build-request.ts";
import { exactEip3009Method } from "../../methods/exact-eip3009/eip3009-method.ts";
import type { Method } from "../../methods/method.ts";
import { exactPermit2Method, uptoPermit2Method } from "../../methods/permit2/permit2-methods.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { type Address, type Hex, keccak256Text, sameAddress } from "../../protocol/hex.ts";
import { type Asset, formatNetwork, type Network } from "../../protocol/networks.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import { address } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { MalformedError } from "../../protocol/wire-values.ts";

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

/** The names of payment methods in options and reports; all but the last are for scheme “exact”. */
export const wayNames = ["eip3009", "permit2", "upto"] as const;
export type WayName = (typeof wayNames)[number];

/** How payments are read that are made so. */
const methodOfWay: Readonly<Record<WayName, Method>> = {
  eip3009: exactEip3009Method,
  permit2: exactPermit2Method,
  upto: uptoPermit2Method,
};

/** One payment method that a shop offers. */
export type Offer = {
  way: WayName;
  network: Network;
  asset: Asset;
  payTo: Address;
  /** In the asset's smallest unit; of “upto” the maximum. */
  amount: bigint;
  /** The facilitator contract of the network, which submits payments of “upto”. */
  facilitator: Address;
};

/** The `maxTimeoutSeconds` of every offer. */
export const maxTimeoutSeconds = 120;

const description = "what is sold here";

/** An offer as the requirements of one version. */
export function requirementsOf(offer: Offer, x402Version: X402Version, resource: string) {
  const { scheme, extra: extraOn } = methodOfWay[offer.way];
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

/** A 402: version 1 has its terms in the body, version 2 in a header. */
type Challenge = { headers: Record<string, string>; body: Record<string, unknown> };

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

/** A payment read from a header. */
export type ReceivedPayment = {
  x402Version: X402Version;
  /** The payment as the buyer wrote it. */
  payload: unknown;
  network: string;
  /** The offer that it was made for; undefined when it fits none. */
  offer: Offer | undefined;
  signed: SignedPayment;
};

const paymentV1 = z.object({ x402Version: z.literal(1), network: z.string(), payload: z.unknown() });
const paymentV2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({ network: z.string(), asset: address }),
  payload: z.unknown(),
  extensions: z.unknown().optional(),
});

/**
 * Reads the payment in the headers of a request: undefined without one, "unreadable" when it is malformed.
 *
 * @param offers what was asked for so far, one at least, all of one payment method; newer ones are tried first
 */
export function readPayment(
  headers: IncomingHttpHeaders,
  offers: readonly [Offer, ...Offer[]],
): ReceivedPayment | "unreadable" | undefined {
  const text = headers["payment-signature"] ?? headers["x-payment"];
  if (text === undefined) return undefined;
  const payload = decodeHeader(String(text));
  const [v1, v2] = [paymentV1.safeParse(payload).data, paymentV2.safeParse(payload).data];
  const written = v2?.accepted ?? v1;
  if (written === undefined) return "unreadable";
  const x402Version = v2 === undefined ? 1 : 2;
  const [{ way, asset: usual }] = offers;
  const read = (asset: Offer["asset"]["address"]) => {
    const place = { value: v2?.payload ?? v1?.payload, path: "payload" };
    return methodOfWay[way].read(place, asset, v2?.extensions);
  };
  try {
    const signed = read(v2?.accepted.asset ?? usual.address);
    const received = { x402Version, payload, network: written.network, signed } as const;
    const offer = offers.findLast((one) => misfitOf(received, one) === undefined);
    // In version 1 a payment does not name its token.
    return offer === undefined || v2 !== undefined
      ? { ...received, offer }
      : { ...received, offer, signed: read(offer.asset.address) };
  } catch (error) {
    if (error instanceof MalformedError) return "unreadable";
    throw error;
  }
}

/** Describes how a payment differs from the offer; undefined if it fits. */
export function misfitOf(
  { x402Version, network, signed }: Omit<ReceivedPayment, "offer">,
  offer: Offer,
): string | undefined {
  const asked = formatNetwork(offer.network, x402Version);
  if (network !== asked) return `it is on ${network} instead of ${asked}`;
  if (!sameAddress(signed.payTo, offer.payTo)) {
    const own = sameAddress(signed.payTo, signed.payer) ? ", the payer's own" : "";
    return `its signature lets the money go to ${signed.payTo}${own}, and payTo is ${offer.payTo}`;
  }
  if (signed.limit !== offer.amount) return `its amount is ${signed.limit} instead of ${offer.amount}`;
  if (x402Version === 2 && !sameAddress(signed.asset, offer.asset.address)) {
    return `its token is ${signed.asset} instead of ${offer.asset.address}`;
  }
  return undefined;
}
