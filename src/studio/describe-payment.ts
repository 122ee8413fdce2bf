import type { ExplainContext } from "../explain/explain.ts";
import { explainRefusal, type RefusalExplanation, requestBodyOf } from "../explain/explain-refusal.ts";
import { authorizationJson } from "../protocol/build-request.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { PaymentDetail, TimelineEntry } from "./payment-view.ts";

/** All that is known of a payment, with what is wrong with it. */
export function detailOf(
  { summary, request, timeline, omitted }: LoggedPayment,
  context: Pick<ExplainContext, "contracts" | "networks">,
): PaymentDetail {
  return {
    ...summary,
    signed: request === undefined ? null : authorizationJson(request.authorization),
    required: request === undefined ? null : termsOf(request),
    body: request === undefined ? null : requestBodyOf(withoutSignature(request), context.contracts),
    timeline: timeline.toSorted((a, b) => a.at - b.at),
    omitted,
    explanations: explanationsOf({ summary, request, timeline, omitted }, context),
  };
}

function withoutSignature(request: PaymentRequest): PaymentRequest {
  const bytes = (request.signature.length - 2) / 2;
  return { ...request, signature: `0x (${bytes} bytes that are not shown)` };
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/** Why the newest of its refusals was one. */
function explanationsOf(
  { summary, request, timeline }: LoggedPayment,
  context: Pick<ExplainContext, "contracts" | "networks">,
): RefusalExplanation[] {
  const { unrouted } = summary;
  if (unrouted !== null) {
    const reason = unrouted.status === 404 ? "not-found" : "method-not-allowed";
    return explainRefusal({ reason, message: unrouted.message, request, at: summary.lastSeenAt }, context);
  }
  const refused = [summary.settle, summary.verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  if (refused === undefined || refused === null) return [];
  const { reason, message } = refused;
  const explanations = explainRefusal(
    { reason: reason ?? undefined, message: message ?? undefined, request, at: summary.lastSeenAt },
    context,
  );
  return explanations.map((one) =>
    one.mistake === reason ? { ...one, ...usedBefore(reason, timeline) } : one,
  );
}

/** When, where and for whom the authorization was settled, if that is why it is refused. */
function usedBefore(reason: string, timeline: readonly TimelineEntry[]): Partial<RefusalExplanation> {
  const settled = timeline.findLast(({ title }) => title === "settled" || title === "recovered");
  if (reason !== "invalid_transaction_state" || settled?.kind !== "ledger") return {};
  const owner = timeline.findLast(({ title }) => title === "claimed")?.details.organizationId;
  const whose = owner === undefined ? "" : ` for ${owner}`;
  return {
    title: "The authorization was used before",
    at: "authorization.nonce",
    got: `settled at ${new Date(settled.at).toISOString()} in transaction ${settled.details.transaction}${whose}`,
    expected: "a nonce that was never used",
  };
}
