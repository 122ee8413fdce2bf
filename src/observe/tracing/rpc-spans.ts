import type { Span } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import type { RpcRequested } from "../channels/channels.ts";
import type { TraceContext } from "./tracer.ts";

/**
 * A client span for each payment or transaction in an HTTP request to an RPC endpoint: with its own methods, and the
 * duration of the whole request.
 */
export function createRpcSpans(
  { api, tracer }: TraceContext,
  spanOf: (subject: Hex, startedAt: number) => Span | undefined,
) {
  const { SpanKind, SpanStatusCode, trace, ROOT_CONTEXT } = api;
  return {
    requested({ network, endpoint, purpose, about, durationMs, error }: RpcRequested): void {
      if (about.size === 0) return;
      const startTime = Date.now() - durationMs;
      for (const [subject, methods] of about) {
        const parent = spanOf(subject, startTime);
        if (parent === undefined) continue;
        const span = tracer.startSpan(
          "x402.rpc",
          {
            ...{ kind: SpanKind.CLIENT, startTime },
            attributes: {
              "x402.network": network,
              "x402.rpc.endpoint": endpoint,
              "x402.rpc.purpose": purpose,
              "x402.rpc.methods": [...methods],
              "x402.rpc.under_way": about.size,
              ...(error !== undefined && { "error.type": error }),
            },
          },
          trace.setSpan(ROOT_CONTEXT, parent),
        );
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
        span.end();
      }
    },
  };
}
