import type * as OpenTelemetry from "@opentelemetry/api";
import type { TraceHeaders } from "../channels/channels.ts";

const format = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const longest = 512;

/**
 * The parent span in a request's `traceparent` and `tracestate`; undefined without one. Parsed here, so that it does
 * not depend on the SDK's propagator.
 *
 * @see https://www.w3.org/TR/trace-context/
 */
export function readTraceparent(
  api: typeof OpenTelemetry,
  { traceparent, tracestate }: TraceHeaders = {},
): OpenTelemetry.SpanContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > longest) return undefined;
  const [, traceId, spanId, flags] = format.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const context: OpenTelemetry.SpanContext = {
    ...{ traceId, spanId, isRemote: true },
    traceFlags: Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED,
    ...(typeof tracestate === "string" &&
      tracestate.length <= longest && { traceState: api.createTraceState(tracestate) }),
  };
  return api.isSpanContextValid(context) ? context : undefined;
}
