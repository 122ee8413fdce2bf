import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { errorsSection, reasonTexts } from "../../protocol/catalogue-texts.ts";
import { formatAmount } from "../../protocol/token-units.ts";
import { nameOfTestPayer } from "../../published/test-payers.ts";
import type { RefusalExplanation } from "../explain/explain-refusal.ts";
import type { PaymentSummary, TimelineEntry } from "./payment-view.ts";

/** The reason that payments are refused for whose authorization was used. */
export const usedReason = "invalid_transaction_state";

/** A settlement of this service, as its ledger says. */
export type SettledHere = {
  /** Unix milliseconds. */
  readonly settledAt: number;
  readonly transaction: string;
  readonly organization: string | undefined;
};

/** How a payment was settled by the service that tells this timeline; undefined if it was not. */
export function settledHere(timeline: readonly TimelineEntry[]): SettledHere | undefined {
  const isPaid = ({ kind, title }: TimelineEntry) =>
    kind === "ledger" && (title === "settled" || title === "recovered");
  const paid = timeline.findLast(isPaid);
  if (paid === undefined) return undefined;
  const owner = timeline.findLast(({ title }) => title === "claimed")?.details.organizationId;
  const organization = owner === undefined ? undefined : `${owner}`;
  return { settledAt: paid.at, transaction: `${paid.details.transaction}`, organization };
}

/**
 * Says when an authorization was used, in which transaction and by whom, and what to do.
 *
 * @param general what is said of the refusal without that
 */
export function explainUse(
  use: SettledHere | PaymentUse | undefined,
  units: PaymentSummary["token"],
  general: Pick<RefusalExplanation, "why" | "fix"> & Partial<RefusalExplanation> = {
    why: reasonTexts[usedReason].meaning,
    fix: reasonTexts[usedReason].fix,
  },
): RefusalExplanation | undefined {
  if (use === undefined) return undefined;
  const known = {
    ...{ mistake: usedReason, more: errorsSection(usedReason), ...general },
    ...{ title: "The authorization was used before", at: "authorization.nonce" },
    expected: "a nonce that was never used",
  };
  if ("settledAt" in use) {
    const { settledAt, transaction, organization } = use;
    const whose = organization === undefined ? "" : ` for ${organization}`;
    return {
      ...known,
      got: `settled at ${new Date(settledAt).toISOString()} in transaction ${transaction}${whose}`,
    };
  }
  const { kind, transaction, blockNumber, timestamp, sender, to, moved } = use;
  const when = new Date(Number(timestamp) * 1_000).toISOString();
  const who = sender === null ? "" : `, sent by ${withName(sender)}`;
  const through = to === null ? "" : ` to the contract ${to}`;
  const where = `at ${when} in transaction ${transaction} of block ${blockNumber}${who}${through}`;
  if (kind === "cancelled") {
    return {
      ...{ ...known, title: "The authorization was cancelled", got: `cancelled ${where}` },
      why: "The payer cancelled it on the token: nothing was paid, and it can never be used.",
      fix: "Have the payer sign a payment with a new nonce.",
    };
  }
  const value = moved && `, which moved ${formatAmount(moved.value, units)} to ${withName(moved.to)}`;
  return {
    ...{ ...known, got: `used ${where}${value ?? ""}` },
    why: "Everyone who has a signed authorization can submit it to the token, not only this facilitator, which did not settle this one.",
    fix: "Do not ask the payer again before you know where the value went: what reached the facilitator contract is recovered for the organization that had claimed it (`x402-kit stranded` lists the rest). For another payment, sign with a new nonce.",
  };
}

function withName(account: string): string {
  const name = nameOfTestPayer(account);
  return name === undefined ? account : `${account} (the test payer ${name})`;
}
