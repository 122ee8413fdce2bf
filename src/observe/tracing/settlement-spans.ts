import type { Span } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { createBoundedMap } from "../../util/cache.ts";
import type { SettlementStep, TransactionStep } from "../channels/channels.ts";
import type { RpcEntry } from "../timeline/record.ts";
import { contextAfter, mostRemembered, type TraceContext } from "./trace-context.ts";

/**
 * A span for each settlement, from its claim to its outcome on chain, and one for each recovery. They may outlive the
 * request, if that was answered `pending`.
 */
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

  /** A settlement claimed by an earlier process gets a span with its first step in this one. */
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
  /** The first transaction and its replacements, one of which is mined. */
  readonly hashes: Hex[];
  /** The block of the newest receipt, since a receipt is read several times. */
  block: Hex | undefined;
};

/**
 * A span for each txNonce of an operator, from signing to the block that closes it; replacements are events. It is in
 * the trace of the first payment in the transaction, with a link to every payment in it.
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

    /** The span of a transaction whose txNonce is not closed yet. */
    find: (hash: Hex) => byHash.get(hash)?.span,

    close(): void {
      for (const { span } of byTxNonce.values()) span.end();
    },
  };
}

/** A client span for calls in an HTTP request to an RPC endpoint; it lasts as long as the whole request. */
export function traceRpc(
  { api, tracer }: TraceContext,
  { network, endpoint, purpose, methods, subjects, error }: RpcEntry,
  parent: { span: Span; startTime: number },
): void {
  const { SpanKind, SpanStatusCode, trace, ROOT_CONTEXT } = api;
  const span = tracer.startSpan(
    "x402.rpc",
    {
      ...{ kind: SpanKind.CLIENT, startTime: parent.startTime },
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
