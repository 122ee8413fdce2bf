import { sameAddress } from "../../protocol/hex.ts";
import type { Offer } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/transfers.ts";

/** The verdicts on a client, worst first. */
export const clientVerdicts = {
  paid_more_or_elsewhere: "paid more or elsewhere than allowed",
  paid_twice: "paid twice",
  paid_not_served: "paid and not served although it could have been",
  hung: "hung",
  not_paid_not_served: "not paid and not served",
  paid_once_served: "paid once and served",
} as const;

export type ClientVerdict = keyof typeof clientVerdicts;

/** Whether a verdict is good. */
export function isGoodVerdict(verdict: ClientVerdict): boolean {
  return verdict === "paid_once_served" || verdict === "not_paid_not_served";
}

/** The facts about one case, from the chain and the processes. */
export type ClientFacts = {
  /** Every transfer from the payer. */
  transfers: readonly TokenTransfer[];
  /** The offer that the payer may accept. */
  allowed: Offer;
  /** How many processes of the client ran. */
  runs: number;
  /** How many of them printed or saved the goods. */
  served: number;
  /** Whether one was killed because it took too long. */
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
