import type { NetworkRegistry } from "../../protocol/networks.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import { payerOf } from "../scene/payers.ts";
import { describePayment, readPayment } from "../scene/received-payment.ts";
import type { Scene } from "../scene/scene.ts";
import type { TokenTransfer } from "../scene/transfers.ts";
import { payFor } from "./payment.ts";
import { send } from "./send.ts";
import type { ShopBuyer, ShopCase } from "./shop-case.ts";
import { judgeShopFacts, type ShopVerdict } from "./shop-verdict.ts";
import type { Terms } from "./terms.ts";

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
