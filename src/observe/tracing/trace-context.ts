import type * as OpenTelemetry from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { createBoundedMap } from "../../util/cache.ts";
import type { TraceHeaders } from "../channels/channels.ts";

/** The number of payments and transactions kept in memory; the oldest are dropped first. */
export const mostRemembered = 10_000;

/** Shared by everything that creates spans. */
export type TraceContext = {
  api: typeof OpenTelemetry;
  tracer: OpenTelemetry.Tracer;
  /** The newest span of each payment, by settlement id; later spans without another parent continue its trace. */
  payments: {
    get(settlementId: Hex): OpenTelemetry.SpanContext | undefined;
    set(settlementId: Hex, span: OpenTelemetry.SpanContext): void;
  };
};

export function createTraceContext(api: typeof OpenTelemetry): TraceContext {
  const tracer = api.trace.getTracer("x402-facilitator-kit");
  return { api, tracer, payments: createBoundedMap(mostRemembered) };
}

/** The context for a child of `parent`, or for a new trace if there is none. */
export function contextAfter(
  { ROOT_CONTEXT, trace }: typeof OpenTelemetry,
  parent: OpenTelemetry.SpanContext | undefined,
): OpenTelemetry.Context {
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}

const traceparentFormat = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const longestHeader = 512;

/**
 * Reads the parent span from a request's `traceparent` and `tracestate`; undefined if missing or invalid. Parsed here
 * so that it does not depend on the SDK's propagator.
 *
 * @see https://www.w3.org/TR/trace-context/
 */
export function readTraceparent(
  api: typeof OpenTelemetry,
  { traceparent, tracestate }: TraceHeaders = {},
): OpenTelemetry.SpanContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > longestHeader) return undefined;
  const [, traceId, spanId, flags] = traceparentFormat.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const context: OpenTelemetry.SpanContext = {
    traceId,
    spanId,
    isRemote: true,
    traceFlags: Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED,
    ...(typeof tracestate === "string" &&
      tracestate.length <= longestHeader && { traceState: api.createTraceState(tracestate) }),
  };
  return api.isSpanContextValid(context) ? context : undefined;
}
