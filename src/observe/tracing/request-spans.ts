import type { Attributes, Context, Link, Span, SpanContext } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { ChecksBegun, RequestEnded, RequestRead, TraceHeaders } from "../channels/channels.ts";
import { contextAfter, readTraceparent, type TraceContext } from "./trace-context.ts";

type OpenRequest = {
  readonly span: Span;
  readonly payment: PaymentRequest;
  readonly startedAt: number;
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
  /**
   * Requests without a claim, by settlement id. After the claim, RPC calls belong to the settlement or its
   * transaction.
   */
  const checking = new Map<Hex, OpenRequest[]>();
  const checksOf = new WeakMap<PaymentRequest, ChecksBegun["checks"]>();
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

  function forget(ended: OpenRequest): void {
    const { settlementId } = ended.payment;
    const others = checking.get(settlementId)?.filter((request) => request !== ended) ?? [];
    if (others.length > 0) checking.set(settlementId, others);
    else checking.delete(settlementId);
  }

  return {
    read({ requestId, operation, settlementId, payment, headers }: RequestRead): void {
      const { parent, links } = placeOf(headers, settlementId);
      const attributes = {
        "x402.operation": operation,
        "x402.request.id": requestId,
        ...describePayment(payment),
      };
      const span = tracer.startSpan(
        `x402.${operation}`,
        { kind: SpanKind.SERVER, attributes, links },
        parent,
      );
      const request = { span, payment, startedAt: Date.now() };
      open.set(requestId, request);
      const waitsForAnother = operation === "settle" && isSettling(settlementId);
      if (!waitsForAnother) checking.set(settlementId, [...(checking.get(settlementId) ?? []), request]);
      payments.set(settlementId, span.spanContext());
    },

    checked({ payment, checks }: ChecksBegun): void {
      checksOf.set(payment, checks);
    },

    claimed(settlementId: Hex): void {
      checking.delete(settlementId);
    },

    ended({ requestId, operation, headers, status, result, tookMs }: RequestEnded): void {
      const { outcome, reason, transaction } = result;
      const request = open.get(requestId);
      const checks = request && checksOf.get(request.payment);
      const check = checks?.flat().findLast(({ refusal }) => refusal !== undefined)?.check;
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
      if (request !== undefined) forget(request);
      // The log line of the request follows immediately.
      lastEnded = { requestId, span };
    },

    spanOf(requestId: string): SpanContext | undefined {
      const span = lastEnded?.requestId === requestId ? lastEnded.span : open.get(requestId)?.span;
      return span?.spanContext();
    },

    /** The newest request that was checking this payment at the given time. */
    checking(settlementId: Hex, at: number): Span | undefined {
      const known = checking.get(settlementId);
      return known?.findLast(({ startedAt }) => startedAt <= at + clockToleranceMs)?.span;
    },

    close(): void {
      for (const { span } of open.values()) span.end();
      open.clear();
      checking.clear();
    },
  };
}

function describePayment({
  x402Version,
  settlementId,
  knownNetwork,
  payer,
  requirements,
}: PaymentRequest): Attributes {
  return {
    "x402.version": x402Version,
    "x402.payment.id": settlementId,
    "x402.network": knownNetwork.name,
    "x402.payer": payer,
    "x402.asset": requirements.asset,
    "x402.amount": `${requirements.amount}`,
  };
}
