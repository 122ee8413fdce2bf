import { errorsSection } from "../explain/errors-section.ts";
import {
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
  requestBodyOf,
} from "../explain/explain-refusal.ts";
import { reasonAdvice } from "../explain/reasons.ts";
import { authorizationJson } from "../protocol/build-request.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { formatAmount } from "../protocol/token-units.ts";
import { nameOfTestPayer } from "../published/test-payers.ts";
import { explainReceived, receivedView } from "./explain-received.ts";
import type { AuthorizationUse, PaymentChain } from "./payment-chain.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { OperationView, PaymentDetail, PaymentSummary, TimelineEntry } from "./payment-view.ts";

/**
 * All that is known of a payment, with what is wrong with it. Its chain, where there is one to ask, says how its
 * authorization was used elsewhere.
 */
export async function describePayment(
  payment: LoggedPayment,
  context: RefusalContext,
  chain: Pick<PaymentChain, "authorizationUse"> | undefined,
): Promise<PaymentDetail> {
  const use = wasUsedElsewhere(payment) ? await chain?.authorizationUse(payment) : undefined;
  return detailOf(payment, context, use);
}

/**
 * All that is known of a payment, with what is wrong with it.
 *
 * @param use how its authorization was used before, where {@link wasUsedElsewhere} and the chain could say
 */
function detailOf(payment: LoggedPayment, context: RefusalContext, use?: AuthorizationUse): PaymentDetail {
  const { summary, request, received, answers, timeline, omitted } = payment;
  return {
    ...summary,
    signed: request === undefined ? null : authorizationJson(request.authorization),
    required: request === undefined ? null : termsOf(request),
    body: request === undefined ? null : requestBodyOf(withoutSignature(request), context),
    received: received === undefined ? null : receivedView(received),
    answers,
    timeline: timeline.toSorted((a, b) => a.at - b.at),
    omitted,
    explanations: explanationsOf(payment, context, use),
  };
}

function withoutSignature(request: PaymentRequest): PaymentRequest {
  const bytes = (request.signature.length - 2) / 2;
  return { ...request, signature: `0x (${bytes} bytes that are not shown)` };
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/**
 * Whether a payment was refused for the state of its authorization, and nothing that was seen here explains that: it may
 * have been used straight on the token, or before this process began.
 */
function wasUsedElsewhere({ summary, timeline }: Pick<LoggedPayment, "summary" | "timeline">): boolean {
  return refusedOperation(summary)?.reason === usedReason && settledHere(timeline) === undefined;
}

const usedReason = "invalid_transaction_state";

function refusedOperation({ settle, verify }: PaymentSummary): OperationView | undefined {
  const refused = [settle, verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  return refused ?? undefined;
}

function settledHere(timeline: readonly TimelineEntry[]): TimelineEntry | undefined {
  const isPaid = ({ kind, title }: TimelineEntry) =>
    kind === "ledger" && (title === "settled" || title === "recovered");
  return timeline.findLast(isPaid);
}

/** Why the newest of its refusals was one. */
function explanationsOf(
  { summary, request, received, timeline }: LoggedPayment,
  context: RefusalContext,
  use: AuthorizationUse | undefined,
): RefusalExplanation[] {
  const { unrouted } = summary;
  if (unrouted !== null) {
    const reason = unrouted.status === 404 ? "not-found" : "method-not-allowed";
    return explainRefusal({ reason, message: unrouted.message, request, at: summary.lastSeenAt }, context);
  }
  const refused = refusedOperation(summary);
  if (refused === undefined) return [];
  const { reason, message } = refused;
  const answered = { reason: reason ?? undefined, message: message ?? undefined, at: summary.lastSeenAt };
  if (received !== undefined) return explainReceived(answered, received, context);
  const explanations = explainRefusal({ ...answered, request }, context);
  const before = reason === usedReason ? usedBefore(timeline, use, summary.token) : undefined;
  if (before === undefined || reason === null) return explanations;
  const { meaning: why, fix } = reasonAdvice[usedReason];
  const own = explanations.find(({ mistake }) => mistake === reason);
  const general = own ?? { mistake: reason, why, fix, more: errorsSection(reason) };
  return [{ ...general, ...before }, ...explanations.filter(({ mistake }) => mistake !== reason)];
}

type UsedBefore = Pick<RefusalExplanation, "title" | "at" | "got" | "expected"> & Partial<RefusalExplanation>;

/** When the authorization was used, in which transaction and by whom, if that is why it is refused. */
function usedBefore(
  timeline: readonly TimelineEntry[],
  use: AuthorizationUse | undefined,
  units: PaymentSummary["token"],
): UsedBefore | undefined {
  const common = { at: "authorization.nonce", expected: "a nonce that was never used" };
  const title = "The authorization was used before";
  const settled = settledHere(timeline);
  if (settled !== undefined) {
    const owner = timeline.findLast(({ title }) => title === "claimed")?.details.organizationId;
    const whose = owner === undefined ? "" : ` for ${owner}`;
    const when = new Date(settled.at).toISOString();
    const got = `settled at ${when} in transaction ${settled.details.transaction}${whose}`;
    return { ...common, title, got };
  }
  if (use === undefined) return undefined;
  const { kind, transaction, blockNumber, timestamp, sender, to, moved } = use;
  const when = new Date(Number(timestamp) * 1_000).toISOString();
  const who = sender === null ? "" : `, sent by ${withName(sender)}`;
  const through = to === null ? "" : ` to the contract ${to}`;
  const where = `at ${when} in transaction ${transaction} of block ${blockNumber}${who}${through}`;
  if (kind === "cancelled") {
    return {
      ...{ ...common, title: "The authorization was cancelled", got: `cancelled ${where}` },
      why: "The payer cancelled it on the token: nothing was paid, and it can never be used.",
      fix: "Have the payer sign a payment with a new nonce.",
    };
  }
  const value = moved && `, which moved ${formatAmount(moved.value, units)} to ${withName(moved.to)}`;
  return {
    ...{ ...common, title, got: `used ${where}${value ?? ""}` },
    why: "Everyone who has a signed authorization can submit it to the token, not only this facilitator, which did not settle this one.",
    fix: "Do not ask the payer again before you know where the value went: what reached the facilitator contract is recovered for the organization that had claimed it (`x402-kit stranded` lists the rest). For another payment, sign with a new nonce.",
  };
}

function withName(account: string): string {
  const name = nameOfTestPayer(account);
  return name === undefined ? account : `${account} (the test payer ${name})`;
}
