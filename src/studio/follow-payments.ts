import { channels, type RequestEnded, type RequestUnrouted } from "../channels/channels.ts";
import { explainRefusal, type RefusalContext } from "../explain/explain-refusal.ts";
import { adviceOn, type PaymentLine } from "../explain/payment-line.ts";
import { unitsOfPayment } from "../protocol/known-token.ts";
import { nameOfTestPayer } from "../published/test-payers.ts";
import { explainReceived } from "./explain-received.ts";

/** Outcomes with nothing to explain: all is well, or the caller is not there any more. */
const unexplained = ["valid", "settled", "abandoned"];

/**
 * Calls `write` with a line for every verify and settle of this process that ends, and for requests that no route
 * answers. Gives what ends that.
 */
export function followPayments(context: RefusalContext, write: (line: PaymentLine) => void): () => void {
  const subscriptions = [
    channels.payment.subscribe((ended) => {
      const line = describeEnded(ended, Date.now(), context);
      write(line);
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

function describeEnded(
  { requestId, operation, payment, settlementId, status, result, received, tookMs }: RequestEnded,
  at: number,
  context: RefusalContext,
): PaymentLine {
  const { outcome, reason, message, transaction } = result;
  const explanations = unexplained.includes(outcome)
    ? []
    : received === undefined
      ? explainRefusal({ reason, message, request: payment, at }, context)
      : explainReceived({ reason, message, at }, received, context);
  const payer = payment?.authorization.from;
  return {
    time: new Date(at).toISOString(),
    operation,
    id: settlementId ?? `request-${requestId}`,
    network: payment?.knownNetwork.name ?? null,
    payer: payer ?? null,
    payerName: (payer && nameOfTestPayer(payer)) ?? null,
    amount: payment === undefined ? null : `${payment.authorization.value}`,
    token: unitsOfPayment(payment, context.tokens),
    outcome,
    status: status ?? null,
    reason: reason ?? null,
    message: message ?? null,
    ...adviceOn(explanations),
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
