import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { challengeOf, type Offer, requirementsOf, stranger } from "../../../src/judge/scene/offers.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { membersOf, parseJson } from "../../../src/util/json.ts";
import { closeAtOnce, listenOnLoopback } from "../../../src/util/node-http.ts";
import { decisionsOf, type OnDecision } from "./decisions.ts";

/*
 * Shops for `judge shop` that run in the test's process: a good one, and others that differ from it by one fault each.
 * They speak protocol version 1, except for those whose fault involves data that only version 2 payments contain.
 */

/** A response of the facilitator; `status` is 0 if there was none. */
type Said = { status: number; body: unknown };

type Payment = {
  key: string;
  /** The payment header, the same for every resource. */
  header: string;
  value: bigint;
  price: bigint;
  /** The resource named in the payment; version 2 only. */
  resource: string;
};

/** The memory of a shop. */
type Memory = {
  /** The receipts of settled but undelivered payments, by payment and URL. */
  owed: Map<string, string>;
  /** Deliveries, by payment and URL, and by payment alone. */
  delivered: Set<string>;
  /** Settlements in progress. */
  underWay: Map<string, Promise<boolean>>;
  /** Payments that are never considered again. */
  closed: Set<string>;
};

export type WrongShop = {
  /** Its mistake, in the words of the guide. */
  fault: string;
  /** The cases that find it. */
  foundBy: readonly string[];
  /** The version that it speaks; 1 by default. */
  x402Version?: X402Version;
  /** True if it serves without checking a payment. */
  isFree?(request: { method: string; url: string; isPaid: boolean }, memory: Memory): boolean;
  /** True if it serves for a payment without settling it. */
  serves?(payment: Payment, memory: Memory): boolean;
  /** The amount that it requests from the facilitator. */
  due?(payment: Payment): bigint;
  /** True if it serves whatever the facilitator says about a payment. */
  servesDespite?(verified: Said, settled: Said | undefined, payment: Payment, memory: Memory): boolean;
  /** True if it serves nothing for a settled payment. */
  withholds?(payment: Payment): boolean;
  /** True if it never considers the payment again. */
  closes?(verified: Said, settled: Said | undefined): boolean;
  /** Set if it also serves requests that bring a payment while that is being settled. */
  shares?: "same thing" | "other thing";
  /** How long it waits for the facilitator to settle. */
  patienceMs?: number;
  /** True if it settles after it has served. */
  isLate?: boolean;
  /** True if it forgets buyers whose connection was gone when it had settled. */
  forgetsGone?: boolean;
  hasNoReceipts?: boolean;
  /** True if it never answers once a payment was verified. */
  isMute?: boolean;
  /** True if it accepts a POST to its resource's path for free. */
  takesPosts?: boolean;
  /** True if it answers a paid request with a redirect to a link that returns the goods once. */
  hasLinks?: boolean;
  /** Offers the same price in another token, before its own or instead of it. */
  offersOtherToken?: "first" | "alone";
  /** The payments that it answers with a 500 instead of a 402. */
  failsOn?: "unreadable" | "other version";
};

const reasonOf = ({ body }: Said) => {
  const { errorReason, invalidReason } = membersOf(body);
  return String(errorReason ?? invalidReason ?? "");
};
const isValid = ({ status, body }: Said) => status === 200 && membersOf(body).isValid === true;
const isSettled = ({ status, body }: Said) => status === 200 && membersOf(body).success === true;
const takesForWarning = (reason: RegExp): Pick<WrongShop, "servesDespite"> => ({
  servesDespite: (verified) => reason.test(reasonOf(verified)),
});

export const goodShop: WrongShop = { fault: "nothing", foundBy: [] };
export const goodShopV2: WrongShop = { ...goodShop, x402Version: 2 };

/** Good shops whose behavior could be mistaken for a fault. */
export const unusualShops: readonly WrongShop[] = [
  { ...goodShop, fault: "takes a POST for nothing", takesPosts: true },
  { ...goodShop, fault: "sells by links that lead to the goods once", hasLinks: true },
  { ...goodShop, fault: "offers another token first", offersOtherToken: "first" },
];

/** A shop that settles after it has served; good if nothing goes wrong. */
export const lateShop: WrongShop = { fault: "serves before it settles", foundBy: [], isLate: true };

/** A shop that never answers a good payment. */
export const muteShop: WrongShop = { fault: "never answers", foundBy: [], isMute: true };

export const wrongShops: readonly WrongShop[] = [
  { fault: "gives no receipts", foundBy: ["plain"], hasNoReceipts: true },
  {
    fault: "serves everybody where somebody has paid",
    foundBy: ["no-payment"],
    isFree: ({ method, url, isPaid }, { delivered }) =>
      `${method} ${url}` === "GET /report" && !isPaid && delivered.size > 0,
  },
  {
    fault: "settles a payment for another site, and refuses it then",
    foundBy: ["other-resource"],
    x402Version: 2,
    withholds: ({ resource }) => new URL(resource).hostname !== "127.0.0.1",
  },
  { fault: "fails where it cannot read a payment", foundBy: ["malformed-payment"], failsOn: "unreadable" },
  { fault: "fails on the other version", foundBy: ["other-version"], failsOn: "other version" },
  {
    fault: "compares the URL with its query",
    foundBy: ["free-with-query"],
    isFree: ({ url }) => url.includes("?"),
  },
  {
    fault: "has a price for GET alone, and none for POST",
    foundBy: ["free-with-method"],
    isFree: ({ method, url }) => method === "POST" && /^\/(report|other)$/.test(url),
  },
  {
    fault: "answers HEAD as though GET were free",
    foundBy: ["free-with-head"],
    isFree: ({ method, url }) => method === "HEAD" && /^\/(report|other)$/.test(url),
  },
  {
    fault: "serves whatever is asked for by a whole URL",
    foundBy: ["free-with-spelling"],
    isFree: ({ url }) => /^http:/.test(url),
  },
  {
    fault: "has no price for a path with /./",
    foundBy: ["free-with-spelling"],
    isFree: ({ url }) => url.includes("/./"),
  },
  {
    fault: "has no price for a path with a parameter",
    foundBy: ["free-with-spelling"],
    isFree: ({ url }) => url.includes(";"),
  },
  {
    fault: "compares the path as it is written",
    foundBy: ["free-with-spelling"],
    isFree: ({ url }) => !/^\/(report|other)(\?|$)/.test(url) && !url.startsWith("/x402-judge"),
  },
  {
    fault: "has forgotten the price of its second route",
    foundBy: ["other-without-payment"],
    isFree: ({ url }) => url === "/other",
  },
  {
    fault: "ignores a wrong signature",
    // In version 1 a payment does not name its token, so one signed for another token has a wrong signature.
    foundBy: ["wrong-signature", "other-asset"],
    ...takesForWarning(/payload_signature/),
  },
  {
    fault: "rounds what is due down",
    foundBy: ["underpaid"],
    due: ({ value, price }) => (value === price - 1n ? value : price),
  },
  {
    fault: "takes more than it asks",
    foundBy: ["overpaid"],
    due: ({ value, price }) => (value >= price + 1n ? value : price),
  },
  {
    fault: "serves for a payment of nothing",
    foundBy: ["nothing-paid"],
    serves: ({ value }) => value === 0n,
  },
  {
    fault: "ignores who is paid",
    foundBy: ["other-recipient"],
    ...takesForWarning(/recipient/),
  },
  { fault: "ignores that a payment has expired", foundBy: ["expired"], ...takesForWarning(/valid_before/) },
  {
    fault: "ignores that a payment is not valid yet",
    foundBy: ["too-early"],
    ...takesForWarning(/valid_after/),
  },
  { fault: "ignores on which network it is paid", foundBy: ["other-network"], ...takesForWarning(/network/) },
  {
    fault: "serves again for whatever it has served",
    foundBy: ["same-twice", "settle-answer-lost", "after-expiry"],
    serves: ({ key }, { delivered }) => delivered.has(key),
  },
  {
    fault: "serves all who bring a payment while it is settled",
    foundBy: ["twenty-at-once"],
    shares: "same thing",
  },
  {
    fault: "serves two things for a payment that is being settled",
    foundBy: ["two-routes"],
    shares: "other thing",
  },
  {
    fault: "sells two things for one payment, one after the other",
    foundBy: ["bought-elsewhere"],
    serves: ({ key, header }, { delivered }) => delivered.has(header) && !delivered.has(key),
  },
  {
    fault: "serves while its facilitator is down",
    foundBy: ["facilitator-down"],
    servesDespite: ({ status }) => status === 0,
  },
  { fault: "waits too short for its facilitator", foundBy: ["facilitator-slow"], patienceMs: 2_900 },
  {
    fault: "never asks again about what was pending",
    foundBy: ["facilitator-pending"],
    closes: (_verified, settled) => settled !== undefined && reasonOf(settled) === "settlement_pending",
  },
  {
    fault: "serves what is pending",
    foundBy: ["facilitator-stays-pending"],
    servesDespite: (_verified, settled) =>
      settled !== undefined && reasonOf(settled) === "settlement_pending",
  },
  {
    fault: "serves when a valid payment is refused by settle",
    foundBy: ["facilitator-refuses"],
    servesDespite: (verified, settled, { key }, { delivered }) =>
      isValid(verified) &&
      settled !== undefined &&
      reasonOf(settled) === "invalid_transaction_state" &&
      !delivered.has(key) &&
      membersOf(settled.body).nextAction === undefined,
  },
  {
    fault: "reads success: true in an answer of 500",
    foundBy: ["facilitator-lies"],
    servesDespite: (_verified, settled) => settled !== undefined && membersOf(settled.body).success === true,
  },
  {
    fault: "takes any answer of 200 for a good one",
    foundBy: ["facilitator-talks-nonsense"],
    servesDespite: ({ status, body }) => status === 200 && body === undefined,
  },
  {
    fault: "takes a payment whose answer was lost for used",
    foundBy: ["settle-answer-lost"],
    closes: (verified, settled) => isValid(verified) && settled?.status === 0,
  },
  {
    fault: "forgets buyers who were gone",
    foundBy: ["buyer-gone"],
    forgetsGone: true,
  },
];

/** The names of the headers and of the amount in each version. */
const headersOf = {
  1: {
    ...{ payment: "x-payment", otherPayment: "payment-signature", receipt: "X-PAYMENT-RESPONSE" },
    amount: "maxAmountRequired",
  },
  2: {
    ...{ payment: "payment-signature", otherPayment: "x-payment", receipt: "PAYMENT-RESPONSE" },
    amount: "amount",
  },
} as const;

export async function openWrongShop(
  shop: WrongShop,
  { facilitatorUrl, apiKey, offer }: { facilitatorUrl: string; apiKey: string; offer: Offer },
  onDecision: OnDecision<WrongShop>,
): Promise<AsyncDisposable & { url: string; otherUrl: string }> {
  const decide = decisionsOf(shop, onDecision);
  const { x402Version = 1 } = shop;
  const resource = "http://127.0.0.1/report";
  const requirements = requirementsOf(offer, x402Version, resource);
  const headers = headersOf[x402Version];
  const links = new Set<string>();
  const memory: Memory = { owed: new Map(), delivered: new Set(), underWay: new Map(), closed: new Set() };

  async function call(operation: string, body: object): Promise<Said> {
    const patienceMs = operation === "settle" ? decide((one) => one.patienceMs) : undefined;
    try {
      const answer = await fetch(`${facilitatorUrl}/${operation}`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        ...(patienceMs !== undefined && { signal: AbortSignal.timeout(patienceMs) }),
      });
      return { status: answer.status, body: parseJson(await answer.text()) };
    } catch {
      return { status: 0, body: undefined };
    }
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/" } = request;
    const header = request.headers[headers.payment];
    const isPaid = header !== undefined || headers.otherPayment in request.headers;
    const at = { method, url, isPaid };
    if (decide((one) => one.isFree?.(at, memory) === true)) return serve(response);
    if (`${method} ${url}` === "POST /report" && shop.takesPosts === true) {
      return void response.writeHead(200, { "content-type": "text/plain" }).end("thank you");
    }
    if (links.delete(url))
      return void response.writeHead(200, { "content-type": "text/plain" }).end("the goods");
    if (!/^\/(report|other)(\?|$)/.test(url) || method !== "GET") return void response.writeHead(404).end();
    if (headers.otherPayment in request.headers && decide((one) => one.failsOn === "other version")) {
      return void response.writeHead(500).end();
    }
    if (typeof header !== "string") return ask(response);
    const paymentPayload = parseJson(Buffer.from(header, "base64").toString("utf8"));
    const { authorization } = membersOf(membersOf(paymentPayload).payload);
    const value = membersOf(authorization).value;
    if (typeof value !== "string") {
      return decide((one) => one.failsOn === "unreadable")
        ? void response.writeHead(500).end()
        : ask(response);
    }
    const key = `${url} ${header}`;
    const named = String(membersOf(membersOf(paymentPayload).resource).url ?? resource);
    const payment = { key, header, value: BigInt(value), price: offer.amount, resource: named };
    const receipt = memory.owed.get(key);
    if (receipt !== undefined) {
      memory.owed.delete(key);
      return serve(response, receipt);
    }
    if (memory.closed.has(key)) return ask(response);
    if (decide((one) => one.serves?.(payment, memory) === true)) return serve(response);
    const other = [...memory.underWay].find(([name]) => name.endsWith(` ${header}`));
    if (other !== undefined) {
      const isShared = decide((one) => one.shares === (other[0] === key ? "same thing" : "other thing"));
      return isShared && (await other[1]) ? serve(response) : ask(response);
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    memory.underWay.set(key, promise);
    const sold = await sell(response, payment, paymentPayload).catch(() => false);
    memory.underWay.delete(key);
    resolve(sold);
  }

  /** Settles and serves; returns true if it has served. */
  async function sell(response: ServerResponse, payment: Payment, paymentPayload: unknown): Promise<boolean> {
    const amount = decide((one) => one.due?.(payment) ?? payment.price);
    const body = {
      ...{ x402Version, paymentPayload },
      paymentRequirements: { ...requirements, [headers.amount]: `${amount}` },
    };
    const verified = await call("verify", body);
    if (decide((one) => one.isMute === true)) return false;
    if (isValid(verified) && decide((one) => one.isLate === true)) {
      if (memory.delivered.has(payment.header)) {
        ask(response);
        return false;
      }
      memory.delivered.add(payment.header);
      setTimeout(() => void call("settle", body), 700);
      serve(response, "late");
      return true;
    }
    const mayBeSettled = isValid(verified) || reasonOf(verified) === "invalid_transaction_state";
    const settled = mayBeSettled ? await call("settle", body) : undefined;
    if (decide((one) => one.closes?.(verified, settled) === true)) memory.closed.add(payment.key);
    const isGood =
      settled !== undefined && isSettled(settled) && !decide((one) => one.withholds?.(payment) === true);
    const serves =
      isGood || decide((one) => one.servesDespite?.(verified, settled, payment, memory) === true);
    if (!serves) {
      ask(response);
      return false;
    }
    memory.delivered.add(payment.key).add(payment.header);
    const receipt = Buffer.from(JSON.stringify(settled?.body ?? {})).toString("base64");
    if (!response.closed) serve(response, receipt);
    else if (!decide((one) => one.forgetsGone === true)) memory.owed.set(payment.key, receipt);
    return true;
  }

  function ask(response: ServerResponse): void {
    const other = { ...offer, asset: { ...offer.asset, address: stranger } };
    const offers = { none: [offer], first: [other, offer], alone: [other] }[shop.offersOtherToken ?? "none"];
    const asked = challengeOf(offers, [x402Version], resource, "a payment is required");
    const types = { "content-type": "application/json" };
    response.writeHead(402, { ...types, ...asked.headers }).end(JSON.stringify(asked.body));
  }

  function serve(response: ServerResponse, receipt = "served"): void {
    if (!decide((one) => one.hasNoReceipts === true)) response.setHeader(headers.receipt, receipt);
    if (shop.hasLinks === true) {
      const link = `/links/${randomUUID()}`;
      links.add(link);
      return void response.writeHead(303, { location: link }).end();
    }
    response.setHeader("content-type", "text/plain");
    response.end("the goods");
  }

  const server = createServer((request, response) => {
    request.resume();
    handle(request, response).catch(() => response.destroy());
  });
  const origin = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  return {
    url: `${origin}/report`,
    otherUrl: `${origin}/other`,
    [Symbol.asyncDispose]: () => closeAtOnce(server),
  };
}
