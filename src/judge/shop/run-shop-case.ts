import { setTimeout as sleep } from "node:timers/promises";
import type { CaseRow, Verdict } from "../frame/run-cases.ts";
import type { FacilitatorLine } from "../scene/facilitator-line.ts";
import { payerOf } from "../scene/offers.ts";
import { describePurchase, type PurchaseFacts } from "../scene/purchases.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { type BuyerOptions, createShopBuyer, type Service, type ShopBuyer } from "./shop-buyer.ts";
import { type Answer, takesLess, wayNameOf } from "./shop-payment.ts";

/** A case with a misbehaving buyer or facilitator. */
export type ShopCase = CaseRow & {
  run(buyer: ShopBuyer): Promise<void>;
};

export type ShopCaseOptions = Omit<BuyerOptions, "payer" | "line"> & {
  line: FacilitatorLine;
  seed: number;
  /** True if the shop may deliver the same goods for the same payment again. */
  redelivers: boolean;
  /** How long to wait for a transfer after the delivery. */
  lateMs: number;
};

/** Runs the case's buyer against the shop, and gathers the facts. */
export async function runShopCase(tested: ShopCase, options: ShopCaseOptions): Promise<ShopFacts> {
  const { scene, terms, seed, redelivers } = options;
  const way = wayNameOf(terms);
  const payer = payerOf(seed, `shop/${terms.network.name}/${way}/${tested.name}`);
  await scene.fund(payer, { way });
  const line = options.line.of(payer.address);
  const { buyer, record } = createShopBuyer({ ...options, payer, line });
  await tested.run(buyer);
  const services = redelivers ? withoutRedeliveries(record.services) : record.services;
  const charges = services.map(({ charge }) => charge);
  const { log, wrong } = record;
  return {
    transfers: await transfersInTime(buyer, log.payments, charges, options),
    price: terms.value,
    takesLess: takesLess(terms),
    charges,
    wrong,
    deliveries: withoutRedeliveries(services).length,
    wasNotAsked: log.payments > 0 && line.requests === 0,
    services: services.length,
    exchanges: log.lines(),
    links: log.links(),
    goods: services.at(-1)?.answer,
  };
}

/** Keeps one delivery for each combination of request and payment. */
function withoutRedeliveries(services: readonly Service[]): Service[] {
  return [...new Map(services.map((service) => [service.request, service])).values()];
}

/** The buyer's transfers. Waits up to `lateMs`, because a shop may settle after it delivered. */
async function transfersInTime(
  { payer, terms }: ShopBuyer,
  payments: number,
  charges: readonly (bigint | undefined)[],
  { scene, lateMs }: ShopCaseOptions,
): Promise<readonly TokenTransfer[]> {
  const due = Math.min(dueFor(charges, takesLess(terms)).length, payments);
  const until = performance.now() + lateMs;
  for (;;) {
    const transfers = await scene.transfersFrom(payer.address);
    if (transfers.length >= due || performance.now() > until) return transfers;
    await sleep(100);
  }
}

/** The verdicts on a shop, worst first. */
const shopVerdicts = {
  served_without_payment: { text: "served without payment", level: "wrong" },
  served_many_times: { text: "one payment served several times", level: "wrong" },
  charged_without_service: { text: "charged without service", level: "wrong" },
  other_price: { text: "settled another price than its 402 said", level: "wrong" },
  other_charge: { text: "charged another amount than it said", level: "wrong" },
  wrong_answer: { text: "wrong status or headers", level: "differs" },
  good: { text: "good", level: "good" },
} as const;

type ShopVerdict = keyof typeof shopVerdicts;

/** The facts about one case, from the chain and the responses. */
export type ShopFacts = PurchaseFacts & {
  /** The price in the shop's 402; for scheme "upto" the maximum. */
  price: bigint;
  /** True if the shop may charge less (scheme "upto"). */
  takesLess: boolean;
  /** The amount charged for each delivery, according to its receipt; undefined if the receipt does not say. */
  charges: readonly (bigint | undefined)[];
  wrong: readonly string[];
  /** The number of deliveries for distinct combinations of request and payment. */
  deliveries: number;
  /** True if the shop received payments but asked its facilitator about none of them. */
  wasNotAsked: boolean;
  /** The last delivery. */
  goods?: Answer | undefined;
};

/** Judges by the transfers on chain, the number of deliveries, and their receipts. */
export function judgeShopFacts(facts: ShopFacts): Verdict & { verdict: ShopVerdict } {
  const verdict = verdictOf(facts);
  const { wrong, wasNotAsked, deliveries, transfers } = facts;
  const notes = [...wrong];
  if (verdict !== "good" && wasNotAsked) notes.push("your facilitator got no request about this payment");
  if (verdict === "served_many_times" && deliveries <= transfers.length) {
    notes.push(
      "it delivered the same thing for the same payment again; if that is intended, use --redelivers",
    );
  }
  return { verdict, ...shopVerdicts[verdict], seen: describePurchase(facts), notes };
}

function verdictOf({ transfers, price, takesLess, charges, wrong }: ShopFacts): ShopVerdict {
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

/** The deliveries that must be paid by a transfer. With "upto", a receipt that charges 0 needs none. */
function dueFor(
  charges: readonly (bigint | undefined)[],
  takesLess: boolean,
): readonly (bigint | undefined)[] {
  return takesLess ? charges.filter((charge) => charge !== 0n) : charges;
}
