import type { Attributes, Context, Link, Span, SpanContext } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { createBoundedMap } from "../../util/cache.ts";
import type { SettlementStep, TraceHeaders, TransactionStep } from "../channels/channels.ts";
import type { AnswerEntry, PaymentRecord, RequestEntry, RpcEntry } from "../timeline/record.ts";
import { contextAfter, mostRemembered, readTraceparent, type TraceContext } from "./trace-context.ts";

type OpenRequest = {
  readonly span: Span;
  /** False for a settle of a payment that is already being settled: its RPC calls belong to that settlement. */
  readonly isChecking: boolean;
};

/** Two clocks of different precision are compared: whole milliseconds and a duration. */
const clockToleranceMs = 1;

/** One server span per verify or settle, from reading the payment to the response. */
export function createRequestSpans(
  { api, tracer, payments }: TraceContext,
  isSettling: (settlementId: Hex) => boolean,
) {
  const { SpanKind, SpanStatusCode, context, trace } = api;
  const open = new Map<string, OpenRequest>();
  let lastEnded: { requestId: string; span: Span } | undefined;

  /**
   * The parent is the active span of an HTTP instrumentation, else the caller's `traceparent`, else the payment's
   * earlier span. If the earlier span is in another trace, it is linked instead.
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
      // The log line of this request follows immediately.
      lastEnded = { requestId, span };
    },

    spanOf(requestId: string): SpanContext | undefined {
      const span = lastEnded?.requestId === requestId ? lastEnded.span : open.get(requestId)?.span;
      return span?.spanContext();
    },

    /**
     * The newest request that was checking the payment at time `at`. Once the payment is claimed, RPC calls belong to
     * its settlement or transaction.
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

/** One span per settlement, from claim to outcome on chain, and one per recovery. May outlive its request. */
export function createSettlementSpans({ api, tracer, payments }: TraceContext) {
  const { SpanKind, SpanStatusCode } = api;
  const open = createBoundedMap<Hex, Span>(mostRemembered, (span) => span.end());

  function start(name: string, settlementId: Hex): Span {
    const span = tracer.startSpan(
      name,
      { kind: SpanKind.INTERNAL, attributes: { "x402.payment.id": settlementId } },
      contextAfter(api, payments.get(settlementId)),
    );
    open.get(settlementId)?.end();
    open.delete(settlementId);
    open.set(settlementId, span);
    payments.set(settlementId, span.spanContext());
    return span;
  }

  /** A settlement that an earlier process claimed gets its span at its first step in this process. */
  function spanOf(settlementId: Hex): Span {
    return open.get(settlementId) ?? start("x402.settlement", settlementId);
  }

  function end(settlementId: Hex, span: Span): void {
    span.end();
    open.delete(settlementId);
  }

  return {
    step(step: SettlementStep): void {
      const { settlementId } = step;
      switch (step.step) {
        case "claimed":
          start("x402.settlement", settlementId).setAttributes({
            "x402.network": step.network,
            "x402.organization.id": step.organizationId,
            "x402.method": step.method,
          });
          return;
        case "mined":
          spanOf(settlementId).addEvent("mined", { "x402.block.number": Number(step.blockNumber) });
          return;
        case "reorganized":
        case "moved":
          spanOf(settlementId).addEvent(step.step);
          return;
        case "recoveryQueued":
          start("x402.recovery", settlementId).setAttribute(
            "x402.recovery.direct_submission",
            step.directSubmission,
          );
          return;
        case "recoveryPostponed":
          (open.get(settlementId) ?? start("x402.recovery", settlementId)).addEvent("postponed", {
            "x402.problem": step.problem,
          });
          return;
        case "settled":
        case "recovered":
        case "failed": {
          const span = spanOf(settlementId);
          span.setAttributes({ "x402.outcome": step.step, "x402.transaction.hash": step.transaction });
          if (step.step === "failed") {
            span.setStatus({ code: SpanStatusCode.ERROR, message: step.failure });
          }
          end(settlementId, span);
          return;
        }
        case "delivered":
          return;
      }
    },

    find: (settlementId: Hex) => open.get(settlementId),

    close(): void {
      for (const span of open.values()) span.end();
    },
  };
}

type OpenTransaction = {
  readonly span: Span;
  readonly txNonce: string;
  /** The first transaction and its replacements; one of them gets mined. */
  readonly hashes: Hex[];
  /** The block of the newest receipt; a receipt is read several times. */
  block: Hex | undefined;
};

/**
 * One span per txNonce of an operator, from signing to the block that closes it; replacements are events. It belongs
 * to the trace of the first payment in the transaction and links to every payment in it.
 */
export function createTransactionSpans(
  { api, tracer, payments }: TraceContext,
  settlementSpan: (settlementId: Hex) => Span | undefined,
) {
  const { SpanKind } = api;
  const byTxNonce = createBoundedMap<string, OpenTransaction>(mostRemembered, ({ span, hashes }) => {
    span.end();
    for (const hash of hashes) byHash.delete(hash);
  });
  const byHash = new Map<Hex, OpenTransaction>();

  function signed(step: Extract<TransactionStep, { step: "signed" }>): void {
    const { network, transaction, purpose: kind, operator, settlementIds } = step;
    const txNonce = `${network} ${operator} ${step.txNonce}`;
    const known = byTxNonce.get(txNonce);
    if (known !== undefined) {
      known.span.addEvent("replaced", {
        "x402.transaction.hash": transaction,
        "x402.transaction.kind": kind,
      });
      known.hashes.push(transaction);
      byHash.set(transaction, known);
      return;
    }
    const contexts = settlementIds.flatMap((id) => payments.get(id) ?? []);
    const span = tracer.startSpan(
      "x402.transaction",
      {
        kind: SpanKind.PRODUCER,
        attributes: {
          "x402.network": network,
          "x402.transaction.hash": transaction,
          "x402.transaction.kind": kind,
          "x402.transaction.nonce": step.txNonce,
          "x402.transaction.payments": settlementIds.length,
          "x402.operator": operator,
          "x402.gas.max_fee": `${step.maxFeePerGas}`,
        },
        links: contexts.map((context) => ({ context })),
      },
      contextAfter(api, contexts[0]),
    );
    const link = { context: span.spanContext() };
    for (const id of settlementIds) settlementSpan(id)?.addLink(link);
    const opened: OpenTransaction = { span, txNonce, hashes: [transaction], block: undefined };
    byHash.set(transaction, opened);
    byTxNonce.set(txNonce, opened);
  }

  return {
    step(step: TransactionStep): void {
      if (step.step === "signed") {
        signed(step);
        return;
      }
      const transaction = byHash.get(step.transaction);
      if (transaction === undefined) return;
      const { span } = transaction;
      if (step.step === "broadcast") {
        span.addEvent("broadcast", { "x402.transaction.hash": step.transaction });
        return;
      }
      const block = { "x402.block.number": Number(step.blockNumber) };
      if (step.step === "receipt") {
        if (step.blockHash === transaction.block) return;
        transaction.block = step.blockHash;
        span.addEvent("receipt", { ...block, "x402.transaction.succeeded": step.succeeded });
        return;
      }
      span.setAttributes({ ...block, "x402.transaction.hash": step.transaction });
      span.end();
      byTxNonce.delete(transaction.txNonce);
      for (const hash of transaction.hashes) byHash.delete(hash);
    },

    /** The span of a transaction whose txNonce is still open. */
    find: (hash: Hex) => byHash.get(hash)?.span,

    close(): void {
      for (const { span } of byTxNonce.values()) span.end();
    },
  };
}

/** A client span for calls in an HTTP request to an RPC endpoint; it spans the whole HTTP request. */
export function traceRpc(
  { api, tracer }: TraceContext,
  { network, endpoint, purpose, methods, subjects, error }: RpcEntry,
  parent: { span: Span; startTime: number },
): void {
  const { SpanKind, SpanStatusCode, trace, ROOT_CONTEXT } = api;
  const span = tracer.startSpan(
    "x402.rpc",
    {
      kind: SpanKind.CLIENT,
      startTime: parent.startTime,
      attributes: {
        "x402.network": network,
        "x402.rpc.endpoint": endpoint,
        "x402.rpc.purpose": purpose,
        "x402.rpc.methods": [...methods],
        "x402.rpc.under_way": subjects,
        ...(error !== undefined && { "error.type": error }),
      },
    },
    trace.setSpan(ROOT_CONTEXT, parent.span),
  );
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  span.end();
}
