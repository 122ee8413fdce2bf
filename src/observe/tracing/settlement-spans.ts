import type { Span } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { createBoundedMap } from "../../util/bounded-map.ts";
import type { SettlementStep } from "../channels/channels.ts";
import { contextAfter, mostRemembered, type TraceContext } from "./tracer.ts";

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
