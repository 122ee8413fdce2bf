import {
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
  requestBodyOf,
} from "../explain/explain-refusal.ts";
import { authorizationJson } from "../protocol/build-request.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { explainReceived, receivedView } from "./explain-received.ts";
import type { AuthorizationUse, PaymentChain } from "./payment-chain.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { OperationView, PaymentDetail, PaymentSummary } from "./payment-view.ts";
import { explainUse, settledHere, usedReason } from "./used-before.ts";

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

function refusedOperation({ settle, verify }: PaymentSummary): OperationView | undefined {
  const refused = [settle, verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  return refused ?? undefined;
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
  if (reason !== usedReason) return explanations;
  const own = explanations.find(({ mistake }) => mistake === reason);
  const before = explainUse(settledHere(timeline) ?? use, summary.token, own);
  if (before === undefined) return explanations;
  return [before, ...explanations.filter(({ mistake }) => mistake !== reason)];
}
