import type { TokenTransfer } from "../scene/transfers.ts";

/** What a shop did in a case, in words, worst first. */
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

/** What the chain and the answers show of one case. */
export type ShopFacts = {
  /** Every transfer from the buyer. */
  transfers: readonly TokenTransfer[];
  /** What one of it costs, by the shop's 402. */
  price: bigint;
  /** How often the buyer was served. */
  services: number;
  /** What is wrong with single answers. */
  wrong: readonly string[];
};

/** Judges by what moved on chain and how often the shop served. */
export function judgeShopFacts({ transfers, price, services, wrong }: ShopFacts): ShopVerdict {
  if (services > transfers.length) {
    return transfers.length === 0 ? "served_without_payment" : "served_many_times";
  }
  if (transfers.length > services) return "charged_without_service";
  if (transfers.some(({ amount }) => amount !== price)) return "other_price";
  return wrong.length > 0 ? "wrong_answer" : "good";
}
