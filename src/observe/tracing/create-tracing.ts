import type * as OpenTelemetry from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { bytes32 } from "../../protocol/primitives.ts";
import type { Channel } from "../channels/channel.ts";
import { channels, type FromService } from "../channels/channels.ts";
import { createRequestSpans } from "./request-spans.ts";
import { createRpcSpans, createSettlementSpans, createTransactionSpans } from "./settlement-spans.ts";
import { createTraceContext } from "./trace-context.ts";

/** Makes the spans of a service until it is closed. */
export type Tracing = {
  /** `traceId` and `spanId` for a log line, found by its request, transaction or payment. */
  logFields(fields: object, requestId: () => unknown): { traceId?: string; spanId?: string };
  /** Ends the subscriptions and all open spans. Exporting the rest is up to the SDK. */
  close(): void;
};

/** Makes spans from the channel messages of the service with this id. */
export function createTracing(api: typeof OpenTelemetry, serviceId: string): Tracing {
  const context = createTraceContext(api, serviceId);
  const settlements = createSettlementSpans(context);
  const requests = createRequestSpans(context, (id) => settlements.find(id) !== undefined);
  const transactions = createTransactionSpans(context, settlements.find);
  const rpc = createRpcSpans(
    context,
    (subject, startedAt) =>
      transactions.find(subject) ?? requests.checking(subject, startedAt) ?? settlements.find(subject),
  );

  /** An exception in an SDK must not become an uncaught exception of the service. */
  function subscribe<Message extends FromService>(
    channel: Channel<Message>,
    listener: (message: Message) => void,
  ): () => void {
    return channel.subscribe((message) => {
      if (message.serviceId !== serviceId) return;
      try {
        listener(message);
      } catch (error) {
        api.diag.error("x402-facilitator-kit could not make a span", error);
      }
    });
  }

  const subscriptions = [
    subscribe(channels.request, requests.read),
    subscribe(channels.checks, requests.checked),
    subscribe(channels.settlement, (step) => {
      settlements.step(step);
      if (step.step === "claimed") requests.claimed(step.settlementId);
    }),
    subscribe(channels.transaction, transactions.step),
    subscribe(channels.rpc, rpc.requested),
    subscribe(channels.payment, requests.ended),
  ];

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
      for (const unsubscribe of subscriptions) unsubscribe();
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
