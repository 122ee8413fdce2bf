import { z } from "zod";
import type { AuthorizationTerms } from "../../methods/exact-eip3009/authorization.ts";
import { methodOf } from "../../methods/methods.ts";
import { type PaymentTimes, timesFrom } from "../../methods/payment-times.ts";
import { signTerms } from "../../methods/sign-terms.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { type Network, type NetworkRegistry, transferMethods } from "../../protocol/networks.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import { address, uint256String } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { sendHttp } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
import type { CasePayer, WayName } from "../scene/offers.ts";

/** The terms of one of a shop's offers. */
export type Terms = {
  x402Version: X402Version;
  /** How it is paid: of scheme “upto” the amount is the maximum, and the payment names who submits it. */
  way: { scheme: "exact"; method: "eip3009" | "permit2" } | { scheme: "upto"; facilitator: Address };
  network: Network;
  asset: { address: `0x${string}`; name: string; version: string };
  payTo: `0x${string}`;
  amount: bigint;
  maxTimeoutSeconds: number;
  /** The requirements as the shop wrote them; version 2 sends them back. */
  written: Record<string, unknown>;
  /** The `resource` member, as the shop wrote it. */
  resource: unknown;
};

/** The name of a payment method. */
export function wayNameOf(way: Terms["way"]): WayName {
  return way.scheme === "upto" ? "upto" : way.method;
}

const domain = { name: z.string(), version: z.string() };
const seconds = z.number().default(60);
const common = { network: z.string(), asset: address, payTo: address, maxTimeoutSeconds: seconds };
const exact = { ...common, scheme: z.literal("exact") };
const offerV1 = z.looseObject({
  ...exact,
  maxAmountRequired: uint256String,
  extra: z.looseObject(domain),
});
const offerV2 = z.union([
  z.looseObject({
    ...exact,
    amount: uint256String,
    extra: z.looseObject({
      ...domain,
      assetTransferMethod: z.enum(transferMethods).default("eip3009"),
    }),
  }),
  // Tokens that are paid by Permit2 need no domain of their own.
  z.looseObject({
    ...exact,
    amount: uint256String,
    extra: z.looseObject({ assetTransferMethod: z.literal("permit2") }),
  }),
  z.looseObject({
    ...common,
    scheme: z.literal("upto"),
    amount: uint256String,
    extra: z.looseObject({ facilitatorAddress: address }),
  }),
]);
const challenge = z.looseObject({
  accepts: z.array(z.record(z.string(), z.unknown())),
  resource: z.unknown().optional(),
});

/** The offers of a 402 of either version: version 2 has them in a header, version 1 in the body. */
export function readTerms({ headers, body }: Answer, known: NetworkRegistry): Terms[] {
  const v2 = challenge.safeParse(decodeHeader(headers.get("payment-required") ?? "")).data;
  const v1 = challenge.safeParse(parseJson(body)).data;
  return [
    ...(v2?.accepts ?? []).flatMap((written) => readOffer(known, 2, written, v2?.resource)),
    ...(v1?.accepts ?? []).flatMap((written) => readOffer(known, 1, written, undefined)),
  ];
}

function readOffer(
  known: NetworkRegistry,
  x402Version: X402Version,
  written: Record<string, unknown>,
  resource: unknown,
): Terms[] {
  const v2 = x402Version === 2 ? offerV2.safeParse(written).data : undefined;
  const v1 = x402Version === 1 ? offerV1.safeParse(written).data : undefined;
  const offer = v1 ?? v2;
  const network = offer === undefined ? undefined : known.find(offer.network, x402Version);
  if (offer === undefined || network === undefined) return [];
  const { asset, payTo, maxTimeoutSeconds, extra } = offer;
  const amount = v1?.maxAmountRequired ?? v2?.amount ?? 0n;
  const token = { address: asset, name: String(extra.name ?? ""), version: String(extra.version ?? "") };
  const way = v2 === undefined ? ({ scheme: "exact", method: "eip3009" } as const) : wayOf(v2);
  return [{ x402Version, way, network, asset: token, payTo, amount, maxTimeoutSeconds, written, resource }];
}

function wayOf(offer: z.infer<typeof offerV2>): Terms["way"] {
  if (offer.scheme === "upto") return { scheme: "upto", facilitator: offer.extra.facilitatorAddress };
  return { scheme: "exact", method: offer.extra.assetTransferMethod };
}

/** How a payment deviates from the shop's terms. */
export type Deviation = {
  /** Changes of the signed authorization. */
  authorization?: Partial<Pick<AuthorizationTerms, "to" | "value"> & PaymentTimes>;
  /** Signed for another token or chain. */
  domain?: Partial<Pick<AuthorizationTerms, "asset" | "chainId">>;
  /** Changes of the payment's unsigned part. */
  accepted?: Record<string, unknown>;
  signature?: Hex;
  resource?: unknown;
  /** The buyer's `payment-identifier`, in version 2. */
  identifier?: string;
};

/** A payment for a shop's terms, or for terms that deviate from them, and the header that it is sent in. */
export async function payFor(
  terms: Terms,
  payer: CasePayer,
  now: bigint,
  deviation: Deviation = {},
): Promise<{ payment: SignedPayment; headers: Record<string, string> }> {
  const signed = await sign(terms, payer, now, deviation);
  const payment = { ...signed, ...(deviation.signature && { signature: deviation.signature }) };
  return { payment, headers: headerOf(terms, payment, deviation) };
}

function sign(
  { way, network, asset, payTo, amount, maxTimeoutSeconds }: Terms,
  { privateKey }: CasePayer,
  now: bigint,
  { authorization, domain }: Deviation,
): Promise<SignedPayment> {
  return signTerms(createPayerSigner(privateKey), {
    asset,
    chainId: network.chainId,
    to: payTo,
    value: amount,
    ...timesFrom(now, { until: maxTimeoutSeconds }),
    ...domain,
    ...authorization,
    ...(way.scheme === "upto" ? { method: "permit2", facilitator: way.facilitator } : { method: way.method }),
  });
}

function headerOf(
  { x402Version, written, resource }: Terms,
  payment: SignedPayment,
  deviation: Deviation,
): Record<string, string> {
  const payload = methodOf(payment).write(payment);
  if (x402Version === 1) {
    const { scheme, network } = { ...written, ...deviation.accepted };
    return { "X-PAYMENT": encodeHeader({ x402Version, scheme, network, payload }) };
  }
  const accepted = { ...written, ...deviation.accepted };
  const sold = deviation.resource ?? resource;
  const { identifier: id } = deviation;
  const extensions = id && { [paymentIdentifierExtension]: { info: { required: false, id } } };
  return {
    "PAYMENT-SIGNATURE": encodeHeader({ x402Version, resource: sold, accepted, payload, extensions }),
  };
}

/** The answer of a shop. */
export type Answer = { status: number; headers: Headers; body: string };

export type SendOptions = {
  /** GET by default. */
  method?: string;
  /** The request target, sent as it is; by default the path and query of the URL. */
  target?: string | undefined;
  headers?: Record<string, string>;
  timeoutMs: number;
  /** Breaks the connection then, without waiting for an answer. */
  breakOff?: Promise<unknown>;
};

/** Sends a request on a new connection. Undefined when no answer came. */
export async function send(url: string, options: SendOptions): Promise<Answer | undefined> {
  const { breakOff: _, ...request } = options;
  const breakOff = new AbortController();
  void options.breakOff?.then(() => breakOff.abort());
  try {
    const answer = await sendHttp(url, { ...request, agent: false, signal: breakOff.signal });
    return { status: answer.status, headers: new Headers(answer.headers), body: answer.text };
  } catch {
    return undefined;
  }
}
