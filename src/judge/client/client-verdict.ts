import { sameAddress } from "../../protocol/hex.ts";
import type { Offer } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/transfers.ts";

/** What a client did in a case, in words, worst first. */
export const clientVerdicts = {
  paid_more_or_elsewhere: "paid more or elsewhere than allowed",
  paid_twice: "paid twice",
  paid_not_served: "paid and not served although it could have been",
  hung: "hung",
  not_paid_not_served: "not paid and not served",
  paid_once_served: "paid once and served",
} as const;

export type ClientVerdict = keyof typeof clientVerdicts;

/** Whether a verdict is good: money and goods are where they should be. */
export function isGoodVerdict(verdict: ClientVerdict): boolean {
  return verdict === "paid_once_served" || verdict === "not_paid_not_served";
}

/** What the chain and the processes show of one case. */
export type ClientFacts = {
  /** Every transfer from the payer. */
  transfers: readonly TokenTransfer[];
  /** What the payer may take. */
  allowed: Offer;
  /** How many of the client ran. */
  runs: number;
  /** How many of them put out what was sold. */
  served: number;
  /** Whether one had to be ended. */
  outlivedItsTime: boolean;
};

/** Judges by transfers on chain and delivered goods, not by what programs print. */
export function judgeClientFacts(facts: ClientFacts): ClientVerdict {
  const { transfers, allowed, runs, served, outlivedItsTime } = facts;
  const isAllowed = ({ network, token, to, amount }: TokenTransfer) =>
    network === allowed.network.name &&
    sameAddress(token, allowed.asset.address) &&
    sameAddress(to, allowed.payTo) &&
    amount <= allowed.amount;
  if (!transfers.every(isAllowed)) return "paid_more_or_elsewhere";
  if (transfers.length > runs) return "paid_twice";
  if (outlivedItsTime) return "hung";
  if (transfers.length > served) return "paid_not_served";
  return served === 0 ? "not_paid_not_served" : "paid_once_served";
}
