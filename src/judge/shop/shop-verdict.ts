import type { TokenTransfer } from "../scene/transfers.ts";

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

export type ShopVerdict = keyof typeof shopVerdicts;

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
