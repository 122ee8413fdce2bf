import { type ExplainContext, explain } from "../explain/explain.ts";
import { mistakes } from "../explain/mistakes.ts";
import { reasonAdvice } from "../explain/reasons.ts";
import { authorizationJson, buildPaymentRequest } from "../protocol/build-request.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { ExplanationView, PaymentDetail } from "./payment-view.ts";

/** All that is known of a payment, with what is wrong with it. */
export function detailOf(
  { summary, request, timeline, omitted }: LoggedPayment,
  contracts: ExplainContext["contracts"],
): PaymentDetail {
  return {
    ...summary,
    signed: request === undefined ? null : authorizationJson(request.authorization),
    required: request === undefined ? null : termsOf(request),
    timeline: timeline.toSorted((a, b) => a.at - b.at),
    omitted,
    explanations: explanationsOf({ summary, request, timeline, omitted }, contracts),
  };
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/** Why a payment was refused: the mistakes that it shows, or else what its reason means. */
function explanationsOf(
  { summary, request }: LoggedPayment,
  contracts: ExplainContext["contracts"],
): ExplanationView[] {
  const refused = [summary.settle, summary.verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  if (refused === undefined || refused === null) return [];
  const found = request === undefined ? [] : findingsOf(request, contracts, summary.firstSeenAt);
  if (found.length > 0) return found;
  const { reason, message } = refused;
  if (reason === null) return [];
  const advice = isReason(reason) ? reasonAdvice[reason] : undefined;
  return [
    {
      mistake: reason,
      title: message ?? reason,
      at: "",
      got: null,
      expected: null,
      why: advice?.meaning ?? "",
      fix: "",
    },
  ];
}

function findingsOf(
  request: PaymentRequest,
  contracts: ExplainContext["contracts"],
  at: number,
): ExplanationView[] {
  const { knownNetwork, requirements, authorization, signature, x402Version } = request;
  const body = buildPaymentRequest({
    x402Version,
    network: knownNetwork,
    asset: { ...knownNetwork.usdc, address: requirements.asset },
    payTo: requirements.payTo ?? contracts[knownNetwork.tier],
    amount: requirements.amount,
    resource: "",
    authorization,
    signature,
  });
  const { findings } = explain(JSON.stringify(body), { contracts, now: BigInt(Math.floor(at / 1000)) });
  return findings.map(({ mistake, at: where, got = null, expected = null, fix }) => {
    const { title, why } = mistakes[mistake];
    return { mistake, title, at: where, got, expected, why, fix };
  });
}

function isReason(reason: string): reason is keyof typeof reasonAdvice {
  return Object.hasOwn(reasonAdvice, reason);
}
