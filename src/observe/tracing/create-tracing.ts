import type * as OpenTelemetry from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { bytes32 } from "../../protocol/primitives.ts";
import type { Entry, PaymentRecord } from "../timeline/record.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { createRequestSpans } from "./request-spans.ts";
import { createSettlementSpans, createTransactionSpans, traceRpc } from "./settlement-spans.ts";
import { createTraceContext } from "./trace-context.ts";

/** Makes the spans of a service until it is closed. */
export type Tracing = {
  /** `traceId` and `spanId` for a log line, found by its request, transaction or payment. */
  logFields(fields: object, requestId: () => unknown): { traceId?: string; spanId?: string };
  /** Ends the subscriptions and all open spans. Exporting the rest is up to the SDK. */
  close(): void;
};

/** Makes spans of what stands in a timeline, from now on. */
export function createTracing(api: typeof OpenTelemetry, timeline: Pick<Timeline, "onEntry">): Tracing {
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
    // An exception in an SDK must not become an uncaught exception of the service.
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

/** Reads the log fields that name a payment or a transaction. */
function readFields(fields: object): { hash: Hex | undefined; settlement: Hex | undefined } {
  const read = (name: string) => bytes32.safeParse(Reflect.get(fields, name)).data;
  return { hash: read("hash"), settlement: read("settlement") };
}
