import type { Span } from "@opentelemetry/api";
import type { RpcRequested } from "../channels/channels.ts";
import type { TraceContext } from "./tracer.ts";

/** More than these share a request only on a busy network, where naming each says little. */
const mostLinks = 16;

/**
 * A client span for each HTTP request to an RPC endpoint while payments are under way on its network. One request may
 * ask for several of them, and the channel does not say for which: the span is a child of the first and has links to
 * the others.
 */
export function createRpcSpans(
  { api, tracer }: TraceContext,
  underWay: (message: RpcRequested, startedAt: number) => readonly Span[],
) {
  const { SpanKind, SpanStatusCode, trace, ROOT_CONTEXT } = api;
  return {
    requested(message: RpcRequested): void {
      const { network, endpoint, purpose, methods, durationMs, error } = message;
      const startTime = Date.now() - durationMs;
      const [first, ...others] = underWay(message, startTime);
      if (first === undefined) return;
      const span = tracer.startSpan(
        "x402.rpc",
        {
          ...{ kind: SpanKind.CLIENT, startTime },
          attributes: {
            "x402.network": network,
            "x402.rpc.endpoint": endpoint,
            "x402.rpc.purpose": purpose,
            "x402.rpc.methods": [...methods],
            "x402.rpc.under_way": 1 + others.length,
            ...(error !== undefined && { "error.type": error }),
          },
          links: others.slice(0, mostLinks).map((other) => ({ context: other.spanContext() })),
        },
        trace.setSpan(ROOT_CONTEXT, first),
      );
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      span.end();
    },
  };
}
