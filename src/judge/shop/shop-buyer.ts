import type { NetworkRegistry } from "../../protocol/networks.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { NotRun } from "../frame/run-cases.ts";
import type { PayerLine } from "../scene/facilitator-line.ts";
import type { CasePayer } from "../scene/offers.ts";
import { createExchangeLog } from "../scene/purchases.ts";
import type { Scene } from "../scene/scene.ts";
import { type Answer, type Deviation, payFor, type SendOptions, send, type Terms } from "./shop-payment.ts";

export type BuyerRequest = Pick<SendOptions, "method" | "target" | "breakOff"> & {
  /** The shop's resource by default. */
  url?: string | undefined;
  isService?: (answer: Answer) => boolean;
};

export type Service = {
  /** The charged amount according to the receipt; undefined if it names none. */
  charge: bigint | undefined;
  /** The payment and the request of this delivery; a redelivery has the same. */
  request: string;
  answer: Answer;
};

export type BuyerOptions = {
  scene: Scene;
  payer: CasePayer;
  terms: Terms;
  knownNetworks: NetworkRegistry;
  line: PayerLine;
  url: string;
  /** The URL of a second resource of the shop; undefined if none is known. */
  otherUrl: string | undefined;
  /** True if the second resource is sold on the same terms. */
  sellsOther: boolean;
  /** The goods delivered in the plain case; undefined if there were none. */
  goods: Answer | undefined;
  headers: Readonly<Record<string, string>>;
  /** How long to wait for a response that is requested now. */
  timeoutMs(): number;
};

/** A buyer at the shop, with its possible actions in a case. */
export type ShopBuyer = ReturnType<typeof createShopBuyer>["buyer"];

/** A buyer without money. It also works at a shop on the internet, without a chain. */
export type UnpaidBuyer = Pick<ShopBuyer, "url" | "goods" | "methods" | "send" | "expect"> & {
  terms: Pick<Terms, "x402Version">;
};

/** Creates the buyer of one case and the record of its purchases. */
export function createShopBuyer(options: BuyerOptions) {
  const { scene, payer, terms, url, headers, timeoutMs } = options;
  const services: Service[] = [];
  const log = createExchangeLog(scene);
  const wrong: string[] = [];
  const signed = new Map<unknown, SignedPayment>();

  function complain(problem: string): void {
    if (!wrong.includes(problem)) wrong.push(problem);
  }

  const buyer = {
    ...options,
    /** The methods to try besides GET and HEAD. */
    methods: ["POST", "PUT", "PATCH", "DELETE"] as readonly string[],
    /** Signs a payment for the shop's terms, or one that deviates from them. */
    async sign(deviation?: Deviation, otherTerms = terms): Promise<Record<string, string>> {
      const { payment, headers } = await payFor(otherTerms, payer, await scene.now(), deviation);
      signed.set(payment.signature, payment);
      return headers;
    },
    /**
     * Sends a request and records the response. A 2xx counts as a delivery unless `isService` says otherwise. After a
     * payment, a redirect within the shop is followed; if it leads to the goods, they are the response.
     */
    async send(
      header: Record<string, string> = {},
      { url: at = url, method = "GET", target, breakOff, isService = isGood }: BuyerRequest = {},
    ): Promise<Answer | undefined> {
      const { pathname, search } = new URL(at);
      const request = `${method} ${target ?? `${pathname}${search}`}`;
      const exchange = log.begin(request);
      const payment = paymentIn(header, signed);
      const [written] = Object.values(header);
      if (payment !== undefined) {
        exchange.payment = log.describe(payment, terms.network.chainId, networkIn(written));
      } else if (written !== undefined) exchange.payment = "with an unreadable payment";
      const first = await send(at, {
        method,
        target,
        timeoutMs: timeoutMs(),
        headers: { ...headers, ...header },
        ...(breakOff !== undefined && { breakOff }),
      });
      const answer = payment === undefined ? first : await goodsBehind(first, at);
      if (answer !== undefined && isService(answer)) {
        services.push({ charge: chargeOf(answer), request: `${written} ${request}`, answer });
      }
      const none = breakOff === undefined ? "no answer" : "broken off by the buyer";
      exchange.answer = `${answer?.status ?? none}`;
      return answer;
    },
    /** Notes a problem if there is no response or it has none of these statuses. */
    expect(answer: Answer | undefined, ...statuses: readonly number[]): void {
      if (answer === undefined) complain("no answer came");
      else if (!statuses.includes(answer.status)) {
        complain(`answered ${answer.status}, where ${statuses.slice(0, 2).join(" or ")} is due`);
      }
    },
    complain,
    /** Ends the case as not run. */
    skip(why: string): never {
      throw new NotRun(why);
    },
    advanceTime: (seconds: number): Promise<void> => scene.advanceTime(seconds),
    /** The transactions that have transferred the buyer's tokens so far. */
    async transactions(): Promise<readonly string[]> {
      return (await scene.transfersFrom(payer.address)).map(({ transaction }) => transaction);
    },
  };

  /** Follows a redirect within the shop to the goods, which get the headers of both responses. Otherwise returns its input. */
  async function goodsBehind(answer: Answer | undefined, at: string): Promise<Answer | undefined> {
    const location = answer?.headers.get("location") ?? null;
    if (answer === undefined || location === null || ![302, 303].includes(answer.status)) return answer;
    const next = URL.parse(location, at);
    if (next === null || next.origin !== new URL(at).origin) return answer;
    const goods = await send(next.href, { timeoutMs: timeoutMs(), headers });
    if (goods === undefined || !isGood(goods)) return answer;
    // A page that asks for payment is not the goods.
    if (options.goods !== undefined && typeOf(goods) !== typeOf(options.goods)) return answer;
    // The receipt is in the redirect's headers.
    return { ...goods, headers: new Headers([...new Map([...answer.headers, ...goods.headers])]) };
  }

  return { buyer, record: { services, log, wrong } };
}

/** Returns true for a 2xx status. */
export function isGood({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** Returns true if an answer could be the goods, which may vary: JSON with all their members, or half of their words. */
export function isLike(answer: Answer, goods: Answer): boolean {
  if (typeOf(answer) !== typeOf(goods)) return false;
  const members = namesIn(goods);
  if (members.size > 0) return shared(members, namesIn(answer)) === 1;
  return answer.body === goods.body || shared(wordsIn(answer), wordsIn(goods)) >= 0.5;
}

/** The share of the larger set that both have in common. */
function shared(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  return [...one].filter((word) => other.has(word)).length / Math.max(one.size, other.size, 1);
}

function namesIn({ body }: Answer): Set<string> {
  return new Set(Object.keys(membersOf(parseJson(body))));
}

function wordsIn({ body }: Answer): Set<string> {
  return new Set(body.toLowerCase().match(/\w+/g));
}

export function typeOf({ headers }: Answer): string {
  return headers.get("content-type") ?? "";
}

function paymentIn(
  header: Readonly<Record<string, string>>,
  signed: ReadonlyMap<unknown, SignedPayment>,
): SignedPayment | undefined {
  const [value = ""] = Object.values(header);
  return signed.get(membersOf(membersOf(decodeHeader(value)).payload).signature);
}

/** The charged amount according to a response's receipt; undefined if it names none. */
function chargeOf({ headers }: Answer): bigint | undefined {
  const { amount } = membersOf(decodeHeader(headers.get("payment-response") ?? ""));
  return typeof amount === "string" ? (parseUint256(amount) ?? undefined) : undefined;
}

/** The network in a payment's unsigned part. */
function networkIn(header = ""): string {
  const written = membersOf(decodeHeader(header));
  return String(written.network ?? membersOf(written.accepted).network);
}
