import { setTimeout as sleep } from "node:timers/promises";
import type { NetworkName } from "../../protocol/networks.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import { payerOf, type WayName } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import {
  type BuyerOptions,
  type BuyerRecord,
  createShopBuyer,
  type Service,
  type ShopBuyer,
  Skipped,
} from "./shop-buyer.ts";
import { type Answer, type Terms, wayNameOf } from "./shop-payment.ts";

/** A misbehaving buyer or facilitator, and the good reaction of a shop. */
export type ShopCase = {
  name: string;
  /** The treatment of the shop. */
  situation: string;
  /** The behaviour of a good shop. */
  good: string;
  /** True if it runs after all others, alone: it depends on when the shop does something, or moves the chain's time. */
  runsAlone?: boolean;
  run(buyer: ShopBuyer): Promise<void>;
};

export type ShopResult = {
  tested: ShopCase;
  network: NetworkName;
  way: WayName;
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
  /** The last that was delivered. */
  goods?: Answer | undefined;
};

export type ShopCaseOptions = Omit<BuyerOptions, "payer" | "line"> & {
  line: FacilitatorLine;
  seed: number;
  /** True if the shop may deliver the same thing for the same payment again. */
  redelivers: boolean;
  /** How long a transfer may come after the goods. */
  lateMs: number;
};

/** The result of a case that was not run. */
export function notRun(
  tested: ShopCase,
  terms: Terms,
  verdict: "not_run" | "not_judged",
  notes: readonly string[],
): ShopResult {
  const nothing = { transfers: [], services: 0, exchanges: [], links: [], tookMs: 0 };
  return { tested, network: terms.network.name, way: wayNameOf(terms), verdict, notes, ...nothing };
}

/** Runs the case's buyer against the shop, and judges the shop. */
export async function runShopCase(tested: ShopCase, options: ShopCaseOptions): Promise<ShopResult> {
  const { scene, terms, seed, redelivers } = options;
  const startedAt = performance.now();
  const { network, scheme, value: price } = terms;
  const way = wayNameOf(terms);
  const payer = payerOf(seed, `shop/${network.name}/${way}/${tested.name}`);
  await scene.fund(payer, { way });
  const line = options.line.of(payer.address);
  const { buyer, record } = createShopBuyer({ ...options, payer, line });
  let skipped: string | undefined;
  try {
    await tested.run(buyer);
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    skipped = error.message;
  }
  const services = redelivers ? withoutRedeliveries(record.services) : record.services;
  const charges = services.map(({ charge }) => charge);
  const transfers = await transfersInTime(buyer, record, charges, options);
  const facts = { transfers, price, takesLess: scheme === "upto", charges };
  const verdict = skipped === undefined ? judgeShopFacts({ ...facts, wrong: record.wrong }) : "not_run";
  const notes = skipped === undefined ? [...record.wrong] : [skipped];
  if (verdict !== "good" && verdict !== "not_run" && record.payments > 0 && line.requests === 0) {
    notes.push("your facilitator got no request about this payment");
  }
  if (verdict === "served_many_times" && withoutRedeliveries(services).length <= transfers.length) {
    notes.push(
      "it delivered the same thing for the same payment again; if that is intended, use --redelivers",
    );
  }
  return {
    tested,
    network: network.name,
    way,
    verdict,
    transfers,
    services: services.length,
    notes,
    exchanges: record.exchanges,
    links: [...record.links],
    tookMs: Math.round(performance.now() - startedAt),
    goods: services.at(-1)?.answer,
  };
}

/** One delivery of each request with each payment. */
function withoutRedeliveries(services: readonly Service[]): Service[] {
  return [...new Map(services.map((service) => [service.request, service])).values()];
}

/** The buyer's transfers; waits where the shop has served, and may still settle what it was sent. */
async function transfersInTime(
  { payer, terms }: ShopBuyer,
  { payments }: BuyerRecord,
  charges: readonly (bigint | undefined)[],
  { scene, lateMs }: ShopCaseOptions,
): Promise<readonly TokenTransfer[]> {
  const due = Math.min(dueFor(charges, terms.scheme === "upto").length, payments);
  const until = performance.now() + lateMs;
  for (;;) {
    const transfers = await scene.transfersFrom(payer.address);
    if (transfers.length >= due || performance.now() > until) return transfers;
    await sleep(100);
  }
}

/** The verdicts on a shop, worst first. */
export const shopVerdicts = {
  served_without_payment: { text: "served without payment", level: "wrong" },
  served_many_times: { text: "one payment served several times", level: "wrong" },
  charged_without_service: { text: "charged without service", level: "wrong" },
  other_price: { text: "settled another price than its 402 said", level: "wrong" },
  other_charge: { text: "charged another amount than it said", level: "wrong" },
  not_judged: { text: "not judged", level: "not_judged" },
  wrong_answer: { text: "wrong status or headers", level: "differs" },
  not_run: { text: "not run", level: "not_run" },
  good: { text: "good", level: "good" },
} as const;

export type ShopVerdict = keyof typeof shopVerdicts;

/** The facts about one case, from the chain and the answers. */
export type ShopFacts = {
  /** Every transfer from the buyer. */
  transfers: readonly TokenTransfer[];
  /** The price in the shop's 402; of scheme “upto” the maximum. */
  price: bigint;
  /** True if the shop may charge less (scheme “upto”). */
  takesLess: boolean;
  /** Of each delivery that the buyer got, what its receipt says that was charged; undefined where it does not say it. */
  charges: readonly (bigint | undefined)[];
  /** Problems of single answers. */
  wrong: readonly string[];
};

/** Judges by transfers on chain, the number of deliveries, and what these say. */
export function judgeShopFacts({ transfers, price, takesLess, charges, wrong }: ShopFacts): ShopVerdict {
  const paid = dueFor(charges, takesLess);
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

/** The deliveries that a transfer is due for: what was served for nothing by its own word needs none. */
function dueFor(
  charges: readonly (bigint | undefined)[],
  takesLess: boolean,
): readonly (bigint | undefined)[] {
  return takesLess ? charges.filter((charge) => charge !== 0n) : charges;
}
