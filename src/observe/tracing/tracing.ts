import type * as OpenTelemetry from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { bytes32 } from "../../protocol/primitives.ts";
import type { Entry, PaymentRecord } from "../timeline/record.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { createRequestSpans, createSettlementSpans, createTransactionSpans, traceRpc } from "./spans.ts";
import { createTraceContext } from "./trace-context.ts";

/**
 * Traces a service if `@opentelemetry/api` is installed and an SDK is registered with it. Otherwise returns undefined
 * and never calls `timeline`.
 *
 * @param load loads the API; by default the installed one
 * @throws if the API is installed but fails to load
 */
export async function openTracing(
  timeline: () => Timeline,
  load: () => Promise<typeof OpenTelemetry | undefined> = loadWhereUsed,
): Promise<Tracing | undefined> {
  const api = await load().catch(absent);
  if (api === undefined || !isRegistered(api)) return undefined;
  return createTracing(api, timeline());
}

/**
 * An SDK registers itself under a symbol shared by all copies of the API. Without one, skip the import: the API's
 * fifty files would delay every start.
 */
async function loadWhereUsed(): Promise<typeof OpenTelemetry | undefined> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  return import("@opentelemetry/api");
}

function absent(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return undefined;
  throw error;
}

/** Without an SDK, the API's tracers do nothing. */
function isRegistered({ trace }: typeof OpenTelemetry): boolean {
  const provider = trace.getTracerProvider();
  // This is the API's proxy provider, perhaps from another copy of the API. It has a delegate once an SDK is registered.
  if (!("getDelegateTracer" in provider) || typeof provider.getDelegateTracer !== "function") return true;
  return provider.getDelegateTracer("x402-facilitator-kit") !== undefined;
}

/** Creates the spans of a service until closed. */
export type Tracing = {
  /** Returns `traceId` and `spanId` for a log line, found by its request, transaction or payment. */
  logFields(fields: object, requestId: () => unknown): { traceId?: string; spanId?: string };
  /** Ends the subscription and all open spans. Exporting the remaining spans is up to the SDK. */
  close(): void;
};

/** Creates spans from the entries of a timeline, starting now. */
export function createTracing(api: typeof OpenTelemetry, timeline: Timeline): Tracing {
  const context = createTraceContext(api);
  const settlements = createSettlementSpans(context);
  const requests = createRequestSpans(context, (id) => settlements.find(id) !== undefined);
  const transactions = createTransactionSpans(context, settlements.find);

  function trace(entry: Entry, [record]: readonly PaymentRecord[]): void {
    switch (entry.kind) {
      case "request":
        if (record !== undefined) requests.read(entry, record);
        return;
      case "answer":
        if (record !== undefined) requests.ended(entry, record);
        return;
      case "settlement":
        settlements.step(entry);
        return;
      case "transaction":
        transactions.step(entry);
        return;
      case "rpc": {
        const startTime = entry.at - entry.durationMs;
        const span =
          transactions.find(entry.subject) ??
          (record && requests.checking(record, startTime)) ??
          settlements.find(entry.subject);
        if (span !== undefined) traceRpc(context, entry, { span, startTime });
      }
    }
  }

  const unsubscribe = timeline.onEntry((entry, records) => {
    // An exception in an SDK must not become an uncaught exception in the service.
    try {
      trace(entry, records);
    } catch (error) {
      api.diag.error("x402-facilitator-kit could not make a span", error);
    }
  });

  function spanOf(fields: object, requestId: () => unknown): OpenTelemetry.SpanContext | undefined {
    const request = requestId();
    if (typeof request === "string") return requests.spanOf(request);
    const { hash, settlement } = readFields(fields);
    return (
      (hash && transactions.find(hash)?.spanContext()) ?? (settlement && context.payments.get(settlement))
    );
  }

  return {
    logFields(fields, requestId) {
      const span = spanOf(fields, requestId);
      return span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
    },
    close() {
      unsubscribe();
      transactions.close();
      settlements.close();
      requests.close();
    },
  };
}

/** Reads the log fields that identify a transaction or a payment. */
function readFields(fields: object): { hash: Hex | undefined; settlement: Hex | undefined } {
  const read = (name: string) => bytes32.safeParse(Reflect.get(fields, name)).data;
  return { hash: read("hash"), settlement: read("settlement") };
}
