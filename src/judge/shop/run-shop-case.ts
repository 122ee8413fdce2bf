import { z } from "zod";
import {
  type Authorization,
  type AuthorizationTerms,
  signAuthorization,
} from "../../methods/exact-eip3009/authorization.ts";
import { authorizationJson } from "../../methods/exact-eip3009/eip3009-payload.ts";
import { type PaymentTimes, timesFrom } from "../../methods/exact-eip3009/payment-times.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import { address, uint256String } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { createPayerSigner } from "../../published/sign-as.ts";
import { sendHttp } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import {
  type CasePayer,
  decodeHeader,
  describePayment,
  encodeHeader,
  payerOf,
  readPayment,
} from "../scene/offers.ts";
import type { Scene, TokenTransfer } from "../scene/scene.ts";

/** The terms of one of a shop's offers. */
export type Terms = {
  x402Version: X402Version;
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

const extra = z.looseObject({ name: z.string(), version: z.string() });
const common = { scheme: z.literal("exact"), network: z.string(), asset: address, payTo: address, extra };
const seconds = z.number().default(60);
const offerV1 = z.looseObject({ ...common, maxAmountRequired: uint256String, maxTimeoutSeconds: seconds });
const offerV2 = z.looseObject({ ...common, amount: uint256String, maxTimeoutSeconds: seconds });
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
  const { asset, payTo, maxTimeoutSeconds } = offer;
  const amount = v1?.maxAmountRequired ?? v2?.amount ?? 0n;
  const token = { address: asset, name: offer.extra.name, version: offer.extra.version };
  return [{ x402Version, network, asset: token, payTo, amount, maxTimeoutSeconds, written, resource }];
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
  /** What the buyer's client calls the payment (`payment-identifier`), in version 2. */
  identifier?: string;
};

/** The header of a payment for a shop's terms, or for terms that deviate from them. */
export async function payFor(
  terms: Terms,
  payer: CasePayer,
  now: bigint,
  deviation: Deviation = {},
): Promise<Record<string, string>> {
  const { network, asset, payTo: to, amount: value, maxTimeoutSeconds } = terms;
  const signed = await signAuthorization(createPayerSigner(payer.privateKey), {
    ...{ asset, chainId: network.chainId, to, value },
    ...timesFrom(now, { until: maxTimeoutSeconds }),
    ...deviation.domain,
    ...deviation.authorization,
  });
  return headerOf(
    terms,
    { ...signed, ...(deviation.signature && { signature: deviation.signature }) },
    deviation,
  );
}

function headerOf(
  { x402Version, written, resource }: Terms,
  { authorization, signature }: { authorization: Authorization; signature: Hex },
  deviation: Deviation,
): Record<string, string> {
  const payload = { signature, authorization: authorizationJson(authorization) };
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
  headers?: Record<string, string>;
  timeoutMs: number;
  /** Breaks the connection this long after the request was sent, without waiting for an answer. */
  breakOffAfterMs?: number;
};

/** Sends a GET request on a new connection. Undefined when no answer came. */
export async function send(url: string, options: SendOptions): Promise<Answer | undefined> {
  const { headers = {}, timeoutMs, breakOffAfterMs } = options;
  const breakOff = new AbortController();
  if (breakOffAfterMs !== undefined) setTimeout(() => breakOff.abort(), breakOffAfterMs);
  try {
    const answer = await sendHttp(url, { headers, timeoutMs, agent: false, signal: breakOff.signal });
    return { status: answer.status, headers: new Headers(answer.headers), body: answer.text };
  } catch {
    return undefined;
  }
}

/** A misbehaving buyer or facilitator, and the good reaction of a shop. */
export type ShopCase = {
  name: string;
  /** What happens to the shop. */
  situation: string;
  /** What a good shop does. */
  good: string;
  /** Whether the shop cannot serve without its facilitator. */
  needsFacilitator?: boolean;
  run(buyer: ShopBuyer): Promise<void>;
};

/** What a case can do. */
export type ShopBuyer = {
  readonly payer: CasePayer;
  readonly terms: Terms;
  readonly knownNetworks: NetworkRegistry;
  readonly line: FacilitatorLine;
  /** The URL of a second resource of the shop; undefined when none is known. */
  readonly otherUrl: string | undefined;
  /** Signs a payment for the shop's terms, or with deviations. */
  sign(deviation?: Deviation, terms?: Terms): Promise<Record<string, string>>;
  /** Sends a request, and remembers the answer. A 2xx counts as service. */
  send(
    headers?: Record<string, string>,
    options?: { url?: string | undefined; breakOffAfterMs?: number },
  ): Promise<Answer | undefined>;
  /** Notes what is wrong with an answer. */
  complain(problem: string): void;
  /** Ends the case as not run. */
  skip(why: string): never;
  /** Moves the chain's time. */
  advanceTime(seconds: number): Promise<void>;
  /** The transactions that have transferred the buyer's tokens so far. */
  transactions(): Promise<readonly string[]>;
};

/** The result of one case. */
export type ShopResult = {
  tested: ShopCase;
  verdict: ShopVerdict;
  transfers: readonly TokenTransfer[];
  services: number;
  /** Requests and answers, in order. */
  exchanges: readonly string[];
  /** Links to the payments in the studio, if it runs. */
  links: readonly string[];
  /** Problems of single answers, or why the case was not run. */
  notes: readonly string[];
  tookMs: number;
};

export type ShopCaseOptions = {
  scene: Scene;
  line: FacilitatorLine;
  terms: Terms;
  knownNetworks: NetworkRegistry;
  url: string;
  otherUrl: string | undefined;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  seed: number;
};

/** The result of a case that was not run. */
export function notRun(tested: ShopCase, why: string): ShopResult {
  const nothing = { transfers: [], services: 0, exchanges: [], links: [], tookMs: 0 };
  return { tested, verdict: "not_run", ...nothing, notes: [why] };
}

/** The case cannot be run with this shop. */
class Skipped extends Error {}

/** Runs the case's buyer against the shop, and judges the shop. */
export async function runShopCase(tested: ShopCase, options: ShopCaseOptions): Promise<ShopResult> {
  const { scene, line, terms, knownNetworks, url, otherUrl, headers, timeoutMs, seed } = options;
  const startedAt = performance.now();
  const payer = payerOf(seed, `shop/${terms.network.name}/${tested.name}`);
  await scene.fund(payer.address);
  const exchanges: string[] = [];
  const links = new Set<string>();
  const wrong: string[] = [];
  const sent: string[] = [];
  let services = 0;
  const buyer: ShopBuyer = {
    payer,
    terms,
    knownNetworks,
    line,
    otherUrl,
    async sign(deviation, otherTerms = terms) {
      return payFor(otherTerms, payer, await scene.now(), deviation);
    },
    async send(payment = {}, { url: at = url, breakOffAfterMs } = {}) {
      const startedSending = `+${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
      const id = idOf(payment, terms);
      if (id !== undefined && scene.studioUrl !== undefined) links.add(`${scene.studioUrl}#${id}`);
      const answer = await send(at, {
        headers: { ...headers, ...payment },
        timeoutMs,
        ...(breakOffAfterMs !== undefined && { breakOffAfterMs }),
      });
      if (answer !== undefined && answer.status >= 200 && answer.status < 300) services++;
      const shown =
        answer?.status ?? (breakOffAfterMs === undefined ? "no answer" : "broken off by the buyer");
      exchanges.push(
        `${startedSending}  GET ${new URL(at).pathname} ${describeHeaders(payment, sent)} → ${shown}`,
      );
      return answer;
    },
    complain: (problem) => void (wrong.includes(problem) || wrong.push(problem)),
    skip(why) {
      throw new Skipped(why);
    },
    advanceTime: (seconds) => scene.advanceTime(seconds),
    async transactions() {
      return (await scene.transfersFrom(payer.address)).map(({ transaction }) => transaction);
    },
  };
  let skipped: string | undefined;
  try {
    await tested.run(buyer);
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    skipped = error.message;
  } finally {
    line.rule = undefined;
  }
  const transfers = await scene.transfersFrom(payer.address);
  const verdict =
    skipped === undefined ? judgeShopFacts({ transfers, price: terms.amount, services, wrong }) : "not_run";
  return {
    ...{ tested, verdict, transfers, services, exchanges, links: [...links] },
    notes: skipped === undefined ? wrong : [skipped],
    tookMs: Math.round(performance.now() - startedAt),
  };
}

/** The settlement id of the payment in a header. */
function idOf(headers: Readonly<Record<string, string>>, { network, asset }: Terms): string | undefined {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const payment = readPayment(Object.fromEntries(lower));
  if (payment === undefined || payment === "unreadable") return undefined;
  const { from, nonce } = payment.authorization;
  return settlementId(network.chainId, asset.address, from, nonce);
}

/** Payments are numbered in the order in which they first came. */
function describeHeaders(headers: Readonly<Record<string, string>>, sent: string[]): string {
  const [[name, value] = []] = Object.entries(headers);
  if (name === undefined || value === undefined) return "without payment";
  if (!sent.includes(value)) sent.push(value);
  const number = sent.indexOf(value) + 1;
  const payment = readPayment({ [name.toLowerCase()]: value });
  if (payment === undefined || payment === "unreadable") return "with an unreadable payment";
  const { value: amount, to } = payment.authorization;
  return describePayment({ number, amount, to, network: payment.network });
}

/** The verdicts on a shop, worst first. */
export const shopVerdicts = {
  served_without_payment: "served without payment",
  served_many_times: "one payment served several times",
  charged_without_service: "charged without service",
  other_price: "settled another price than its 402 said",
  wrong_answer: "wrong status or headers",
  not_run: "not run",
  good: "good",
} as const;

type ShopVerdict = keyof typeof shopVerdicts;

/** The facts about one case, from the chain and the answers. */
export type ShopFacts = {
  /** Every transfer from the buyer. */
  transfers: readonly TokenTransfer[];
  /** The price in the shop's 402. */
  price: bigint;
  /** How many 2xx answers the buyer got. */
  services: number;
  /** Problems of single answers. */
  wrong: readonly string[];
};

/** Judges by transfers on chain and the number of 2xx answers. */
export function judgeShopFacts({ transfers, price, services, wrong }: ShopFacts): ShopVerdict {
  if (services > transfers.length) {
    return transfers.length === 0 ? "served_without_payment" : "served_many_times";
  }
  if (transfers.length > services) return "charged_without_service";
  if (transfers.some(({ amount }) => amount !== price)) return "other_price";
  return wrong.length > 0 ? "wrong_answer" : "good";
}
