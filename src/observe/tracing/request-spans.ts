import type { Attributes, Context, Link, Span, SpanContext } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { TraceHeaders } from "../channels/channels.ts";
import type { AnswerEntry, PaymentRecord, RequestEntry } from "../timeline/record.ts";
import { contextAfter, readTraceparent, type TraceContext } from "./trace-context.ts";

type OpenRequest = {
  readonly span: Span;
  /** False where another request settles the payment: what the chain is asked is asked for that. */
  readonly isChecking: boolean;
};

/** Two clocks of different precision are compared: whole milliseconds, and a duration. */
const clockToleranceMs = 1;

/** A server span for each verify and settle, from the reading of its payment to its answer. */
export function createRequestSpans(
  { api, tracer, payments }: TraceContext,
  isSettling: (settlementId: Hex) => boolean,
) {
  const { SpanKind, SpanStatusCode, context, trace } = api;
  const open = new Map<string, OpenRequest>();
  let lastEnded: { requestId: string; span: Span } | undefined;

  /**
   * The parent is the span of an HTTP instrumentation, else the caller's, else the payment's earlier one. If it is
   * not the earlier one, that is linked.
   */
  function placeOf(
    headers: TraceHeaders | undefined,
    settlementId: Hex | undefined,
  ): { parent: Context; links: Link[] } {
    const earlier = settlementId === undefined ? undefined : payments.get(settlementId);
    const active = trace.getSpanContext(context.active());
    const parent = active ?? readTraceparent(api, headers) ?? earlier;
    const isElsewhere = earlier !== undefined && earlier.traceId !== parent?.traceId;
    return { parent: contextAfter(api, parent), links: isElsewhere ? [{ context: earlier }] : [] };
  }

  return {
    read({ requestId, operation, headers }: RequestEntry, { request }: PaymentRecord): void {
      if (request === undefined) return;
      const { settlementId } = request;
      const { parent, links } = placeOf(headers, settlementId);
      const attributes = {
        "x402.operation": operation,
        "x402.request.id": requestId,
        ...describePayment(request),
      };
      const span = tracer.startSpan(
        `x402.${operation}`,
        { kind: SpanKind.SERVER, attributes, links },
        parent,
      );
      open.set(requestId, { span, isChecking: operation === "verify" || !isSettling(settlementId) });
      payments.set(settlementId, span.spanContext());
    },

    ended(answer: AnswerEntry, { entries }: PaymentRecord): void {
      const { requestId, operation, headers, status, result, tookMs } = answer;
      const { outcome, reason, transaction } = result;
      const request = open.get(requestId);
      const check = entries
        .flatMap((entry) => (entry.kind === "checks" && entry.requestId === requestId ? entry.checks : []))
        .findLast(({ refusal }) => refusal !== undefined)?.check;
      const span =
        request?.span ??
        tracer.startSpan(
          `x402.${operation}`,
          {
            kind: SpanKind.SERVER,
            startTime: Date.now() - tookMs,
            attributes: { "x402.operation": operation, "x402.request.id": requestId },
          },
          placeOf(headers, undefined).parent,
        );
      span.setAttributes({
        "x402.outcome": outcome,
        ...(reason !== undefined && { "x402.reason": reason }),
        ...(check !== undefined && { "x402.check": check }),
        ...(transaction !== undefined && { "x402.transaction.hash": transaction }),
        ...(status !== undefined && { "http.response.status_code": status }),
      });
      if (outcome === "undetermined") {
        span.setStatus({ code: SpanStatusCode.ERROR, ...(reason !== undefined && { message: reason }) });
      }
      span.end();
      open.delete(requestId);
      // The log line of the request follows immediately.
      lastEnded = { requestId, span };
    },

    spanOf(requestId: string): SpanContext | undefined {
      const span = lastEnded?.requestId === requestId ? lastEnded.span : open.get(requestId)?.span;
      return span?.spanContext();
    },

    /**
     * The newest request that was checking a payment at the given time. Once it is claimed, the chain is asked for the
     * settlement, or its transaction.
     */
    checking({ entries }: PaymentRecord, at: number): Span | undefined {
      const newest = entries.findLast(
        (entry) =>
          (entry.kind === "settlement" && entry.step === "claimed") ||
          (entry.kind === "request" &&
            entry.at <= at + clockToleranceMs &&
            open.get(entry.requestId)?.isChecking === true),
      );
      return newest?.kind === "request" ? open.get(newest.requestId)?.span : undefined;
    },

    close(): void {
      for (const { span } of open.values()) span.end();
      open.clear();
    },
  };
}

function describePayment({
  x402Version,
  settlementId,
  knownNetwork,
  payer,
  payment,
  requirements,
}: PaymentRequest): Attributes {
  return {
    "x402.version": x402Version,
    "x402.payment.id": settlementId,
    "x402.network": knownNetwork.name,
    "x402.method": payment.method,
    "x402.payer": payer,
    "x402.asset": requirements.asset,
    "x402.amount": `${requirements.amount}`,
  };
}
