import { errorsSection } from "../../protocol/catalogue-texts.ts";
import { self } from "../../util/self-command.ts";
import { createTimeBudget, type TimeBudget } from "../../util/time-budget.ts";
import { channels, type RequestEnded, type RequestUnrouted } from "../channels/channels.ts";
import {
  explainLostAnswer,
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
} from "../explain/explain-refusal.ts";
import { adviceOn, type PaymentLine } from "../explain/payment-line.ts";
import { termsOf } from "../timeline/summary.ts";
import { explainReceived } from "./refusal-details.ts";

/** Outcomes for which nothing is looked for in the payment: all is well, or the caller is not there any more. */
const unexplained = ["valid", "settled", "abandoned"];

/**
 * How much time explanations may take from the payments of the same process: one of a wrong signature takes some 4 ms, so
 * that is a burst of 25, or twelve a second.
 */
const explaining = { share: 0.05, mostMs: 100 };

/**
 * Calls `write` with a line for every verify and settle of this process that ends, and for requests that no route
 * answers. Gives what ends that. Where many are refused, the lines come without the cause that is looked for in the
 * payment, and say how to ask for it.
 */
export function followPayments(
  context: RefusalContext,
  write: (line: PaymentLine) => void,
  budget: TimeBudget = createTimeBudget(explaining),
): () => void {
  const subscriptions = [
    channels.answer.subscribe((ended) => {
      const at = Date.now();
      const { outcome, reason } = ended.result;
      const isLost = outcome === "abandoned" && reason === undefined;
      const advice = unexplained.includes(outcome)
        ? adviceOn(isLost ? [explainLostAnswer(null)] : [])
        : (budget.spend(() => adviceOn(explainEnded(ended, at, context))) ?? adviceToAsk(ended));
      write({ ...describeEnded(ended, at, context), ...advice });
    }),
    channels.unrouted.subscribe((unrouted) => {
      if (unrouted.path === "/favicon.ico") return;
      write(describeUnrouted(unrouted, Date.now(), context));
    }),
  ];
  return () => {
    for (const unsubscribe of subscriptions) unsubscribe();
  };
}

function explainEnded(
  { payment, body, result: { reason, message, situation, chainTime }, received }: RequestEnded,
  at: number,
  context: RefusalContext,
): RefusalExplanation[] {
  const refused = { reason, message, situation, chainTime, at };
  return received === undefined
    ? explainRefusal({ ...refused, request: payment, body }, context)
    : explainReceived(refused, received, context);
}

/** What is advised where there is no time to look for the cause. */
function adviceToAsk(ended: RequestEnded): Pick<PaymentLine, "fix" | "more"> {
  const { reason } = ended.result;
  return {
    fix: `Many payments are being refused; \`${self} why ${idOf(ended)}\` says what is wrong with this one.`,
    more: reason === undefined ? null : errorsSection(reason),
  };
}

/** What `x402-kit why` takes. */
function idOf({ settlementId, requestId }: RequestEnded): string {
  return settlementId ?? `request-${requestId}`;
}

function describeEnded(
  ended: RequestEnded,
  at: number,
  context: RefusalContext,
): Omit<PaymentLine, "fix" | "more"> {
  const { operation, payment, received, status, result, tookMs } = ended;
  const { outcome, reason, message, transaction } = result;
  const { asset: _, ...terms } = termsOf({ request: payment, received }, context);
  return {
    time: new Date(at).toISOString(),
    operation,
    id: idOf(ended),
    ...terms,
    outcome,
    status: status ?? null,
    reason: reason ?? null,
    message: message ?? null,
    transaction: transaction ?? null,
    tookMs,
  };
}

function describeUnrouted(
  { requestId, method, path, status, message }: RequestUnrouted,
  at: number,
  context: RefusalContext,
): PaymentLine {
  const reason = status === 404 ? "not-found" : "method-not-allowed";
  return {
    ...{ operation: null, network: null, payer: null, payerName: null, amount: null, token: null },
    ...{ transaction: null, tookMs: null },
    time: new Date(at).toISOString(),
    id: `request-${requestId}`,
    outcome: `${method} ${path}`,
    status,
    reason,
    message,
    ...adviceOn(explainRefusal({ reason, message, request: undefined, at }, context)),
  };
}
