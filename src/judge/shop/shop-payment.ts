import type { AuthorizationTerms } from "../../methods/exact-eip3009/authorization.ts";
import { keepsChannels, methodsOf, shortNameOf } from "../../methods/method-lists.ts";
import type { PaymentTimes } from "../../methods/payment-times.ts";
import { findChallenge, readOffers } from "../../payer/read-offer.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { bodiesOf, headerOf, type Offer, signOffer } from "../../payer/sign-payment.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { Asset, Network, NetworkRegistry } from "../../protocol/networks.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { sendHttp } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
import type { CasePayer } from "../scene/offers.ts";

/** The terms of one of a shop's offers. */
export type Terms = Offer<Network & { asset: Asset }>;

/** The short name of a payment method. */
export function wayNameOf({ scheme, method: transfer }: Pick<Terms, "scheme" | "method">): string {
  return shortNameOf({ scheme, transfer });
}

/** Returns true if a shop may charge less than its offer says. */
export function takesLess({ scheme, method }: Pick<Terms, "scheme" | "method">): boolean {
  return methodsOf(scheme, method).some((one) => one.takesLess);
}

/** Reads the offers of a 402 in either version: version 2 has them in a header, version 1 in the body. */
export function readAllTerms({ headers, body }: Answer, { all }: NetworkRegistry): Terms[] {
  const networks = all.map((network) => ({ ...network, asset: network.usdc }));
  const challenges = [findChallenge(headers.get("payment-required") ?? ""), findChallenge(parseJson(body))];
  return challenges.flatMap((challenge) => (challenge === undefined ? [] : readOffers(challenge, networks)));
}

/** Reads the offers that are paid one payment at a time, without a channel. */
export function readTerms(answer: Answer, known: NetworkRegistry): Terms[] {
  return readAllTerms(answer, known).filter(({ scheme }) => !keepsChannels(scheme));
}

/** How a payment deviates from the shop's terms. */
export type Deviation = {
  authorization?: Partial<Pick<AuthorizationTerms, "to" | "value"> & PaymentTimes>;
  /** A different token or chain to sign for. */
  domain?: Partial<Pick<AuthorizationTerms, "asset" | "chainId">>;
  /** Changes to the payment's unsigned part. */
  accepted?: Record<string, string>;
  signature?: Hex;
  resource?: unknown;
  /** The buyer's `payment-identifier`; version 2 only. */
  identifier?: string;
};

/** Signs a payment for a shop's terms, or one that deviates from them. Returns it with the header to send it in. */
export async function payFor(
  terms: Terms,
  payer: CasePayer,
  now: bigint,
  deviation: Deviation = {},
): Promise<{ payment: SignedPayment; headers: Record<string, string> }> {
  const { authorization, domain, accepted, signature, identifier: id } = deviation;
  const signer = createPayerSigner(payer.privateKey);
  const signed = await signOffer(signer, terms, now, { ...domain, ...authorization });
  const payment = { ...signed, ...(signature && { signature }) };
  const { x402Version } = terms;
  const written = { ...terms.written, ...accepted };
  const resource = deviation.resource ?? terms.resource;
  const extensions = id ? { [paymentIdentifierExtension]: { info: { required: false, id } } } : undefined;
  const { request } = bodiesOf({ x402Version, written, resource }, payment, { extensions });
  const { name, value } = headerOf(x402Version, request.paymentPayload);
  return { payment, headers: { [name]: value } };
}

export type Answer = { status: number; headers: Headers; body: string };

export type SendOptions = {
  /** GET by default. */
  method?: string;
  /** The request target, sent as is; by default the URL's path and query. */
  target?: string | undefined;
  headers?: Record<string, string>;
  timeoutMs: number;
  /** Breaks the connection when this resolves, without waiting for a response. */
  breakOff?: Promise<unknown>;
};

/** Sends a request on a new connection. Returns undefined if no response arrives. */
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
