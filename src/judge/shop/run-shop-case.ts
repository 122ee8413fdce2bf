import type { NetworkRegistry } from "../../protocol/networks.ts";
import { type SignedPayment, settlementId } from "../../protocol/signed-payment.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import { type CasePayer, decodeHeader, describePayment, payerOf } from "../scene/offers.ts";
import type { Scene, TokenTransfer } from "../scene/scene.ts";
import { type Answer, type Deviation, payFor, send, type Terms } from "./shop-payment.ts";

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
  const { way, network } = terms;
  if (way.scheme === "upto" || way.method === "permit2") await scene.approvePermit2(payer.address);
  const exchanges: string[] = [];
  const links = new Set<string>();
  const wrong: string[] = [];
  const sent: string[] = [];
  /** What was signed, by its signature. */
  const signed = new Map<unknown, SignedPayment>();
  const charges: (bigint | undefined)[] = [];
  const buyer: ShopBuyer = {
    payer,
    terms,
    knownNetworks,
    line,
    otherUrl,
    async sign(deviation, otherTerms = terms) {
      const { payment, headers } = await payFor(otherTerms, payer, await scene.now(), deviation);
      signed.set(payment.signature, payment);
      return headers;
    },
    async send(header = {}, { url: at = url, breakOffAfterMs } = {}) {
      const startedSending = `+${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
      const payment = paymentIn(header, signed);
      if (payment !== undefined && scene.studioUrl !== undefined) {
        const { nonceSpace, payer: from, nonce } = payment;
        links.add(`${scene.studioUrl}#${settlementId(network.chainId, nonceSpace, from, nonce)}`);
      }
      const answer = await send(at, {
        headers: { ...headers, ...header },
        timeoutMs,
        ...(breakOffAfterMs !== undefined && { breakOffAfterMs }),
      });
      if (answer !== undefined && answer.status >= 200 && answer.status < 300) charges.push(chargeOf(answer));
      const shown =
        answer?.status ?? (breakOffAfterMs === undefined ? "no answer" : "broken off by the buyer");
      exchanges.push(
        `${startedSending}  GET ${new URL(at).pathname} ${describeHeader(header, payment, sent)} → ${shown}`,
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
  const facts = { transfers, price: terms.amount, takesLess: way.scheme === "upto", charges, wrong };
  const verdict = skipped === undefined ? judgeShopFacts(facts) : "not_run";
  return {
    ...{ tested, verdict, transfers, services: charges.length, exchanges, links: [...links] },
    notes: skipped === undefined ? wrong : [skipped],
    tookMs: Math.round(performance.now() - startedAt),
  };
}

/** The payment in a header, if the buyer has signed it. */
function paymentIn(
  header: Readonly<Record<string, string>>,
  signed: ReadonlyMap<unknown, SignedPayment>,
): SignedPayment | undefined {
  const [value = ""] = Object.values(header);
  return signed.get(membersOf(membersOf(decodeHeader(value)).payload).signature);
}

/** What the receipt of an answer says that was charged; undefined where it does not say it. */
function chargeOf({ headers }: Answer): bigint | undefined {
  const { amount } = membersOf(decodeHeader(headers.get("payment-response") ?? ""));
  return typeof amount === "string" ? (parseUint256(amount) ?? undefined) : undefined;
}

/** Payments are numbered in the order in which they first came. */
function describeHeader(
  header: Readonly<Record<string, string>>,
  payment: SignedPayment | undefined,
  sent: string[],
): string {
  const [value] = Object.values(header);
  if (value === undefined) return "without payment";
  if (!sent.includes(value)) sent.push(value);
  const number = sent.indexOf(value) + 1;
  if (payment === undefined) return "with an unreadable payment";
  const written = membersOf(decodeHeader(value));
  const network = String(written.network ?? membersOf(written.accepted).network);
  return describePayment({ number, amount: payment.limit, to: payment.payTo, network });
}

/** The verdicts on a shop, worst first. */
export const shopVerdicts = {
  served_without_payment: "served without payment",
  served_many_times: "one payment served several times",
  charged_without_service: "charged without service",
  other_price: "settled another price than its 402 said",
  other_charge: "charged another amount than it said",
  wrong_answer: "wrong status or headers",
  not_run: "not run",
  good: "good",
} as const;

type ShopVerdict = keyof typeof shopVerdicts;

/** The facts about one case, from the chain and the answers. */
export type ShopFacts = {
  /** Every transfer from the buyer. */
  transfers: readonly TokenTransfer[];
  /** The price in the shop's 402; of scheme “upto” the maximum. */
  price: bigint;
  /** Whether the shop may charge less (scheme “upto”). */
  takesLess: boolean;
  /** Of each 2xx answer that the buyer got, what its receipt says that was charged; undefined where it does not say it. */
  charges: readonly (bigint | undefined)[];
  /** Problems of single answers. */
  wrong: readonly string[];
};

/** Judges by transfers on chain, the number of 2xx answers, and what these say. */
export function judgeShopFacts({ transfers, price, takesLess, charges, wrong }: ShopFacts): ShopVerdict {
  // What was served for nothing by its own word needs no transfer.
  const paid = takesLess ? charges.filter((charge) => charge !== 0n) : charges;
  if (paid.length > transfers.length) {
    return transfers.length === 0 ? "served_without_payment" : "served_many_times";
  }
  if (transfers.length > paid.length) return "charged_without_service";
  if (transfers.some(({ amount }) => (takesLess ? amount > price : amount !== price))) return "other_price";
  const said = paid.filter((charge) => charge !== undefined);
  const isUnsaid = ({ amount }: TokenTransfer) => said.length === paid.length && !said.includes(amount);
  if (takesLess && transfers.some(isUnsaid)) return "other_charge";
  return wrong.length > 0 ? "wrong_answer" : "good";
}
