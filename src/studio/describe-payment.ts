import type { ExplainContext } from "../explain/explain.ts";
import { explainRefusal, type RefusalExplanation } from "../explain/explain-refusal.ts";
import { authorizationJson } from "../protocol/build-request.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { PaymentDetail } from "./payment-view.ts";

/** All that is known of a payment, with what is wrong with it. */
export function detailOf(
  { summary, request, timeline, omitted }: LoggedPayment,
  context: Pick<ExplainContext, "contracts" | "networks">,
): PaymentDetail {
  return {
    ...summary,
    signed: request === undefined ? null : authorizationJson(request.authorization),
    required: request === undefined ? null : termsOf(request),
    timeline: timeline.toSorted((a, b) => a.at - b.at),
    omitted,
    explanations: explanationsOf({ summary, request, timeline, omitted }, context),
  };
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/** Why the newest of its refusals was one. */
function explanationsOf(
  { summary, request }: LoggedPayment,
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
  return explainRefusal(
    { reason: reason ?? undefined, message: message ?? undefined, request, at: summary.lastSeenAt },
    context,
  );
}
