import * as api from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { publish } from "../../../test/support/publish.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { RequestRead, SettlementStep, TransactionStep } from "../channels/channels.ts";
import { createTimeline, type Timeline } from "../timeline/timeline.ts";
import { createTracing, type Tracing } from "./tracing.ts";

const serviceId = "traced";
const exporter = new InMemorySpanExporter();
let timeline: Timeline;
let tracing: Tracing;
beforeEach(() => {
  api.trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  timeline = createTimeline(serviceId);
  tracing = createTracing(api, timeline);
});
afterEach(() => {
  tracing.close();
  timeline.close();
  exporter.reset();
  api.trace.disable();
});

const hash = (digit: string): Hex => `0x${digit.repeat(64)}`;
const address = (digit: string): Hex => `0x${digit.repeat(40)}`;

/** A payment that differs from others by its nonce. */
const paymentWith = (digit: string) => examplePayment({ nonce: hash(digit) });

function read(requestId: string, digit: string, message: Partial<RequestRead> = {}) {
  const payment = paymentWith(digit);
  const { settlementId } = payment;
  publish("request", { serviceId, requestId, operation: "settle", payment, settlementId, ...message });
  return payment;
}

function settle(step: SettlementStep): void {
  publish("settlement", step);
}

function transact(step: TransactionStep): void {
  publish("transaction", step);
}

function claim(settlementId: Hex): void {
  const claimed = { network: "base", organizationId: "shop", method: "upto-permit2", amount: 1n } as const;
  settle({ serviceId, settlementId, step: "claimed", ...claimed });
}

function sign(transaction: Hex, settlementIds: readonly Hex[]): void {
  transact({
    serviceId,
    network: "base",
    transaction,
    step: "signed",
    purpose: "settle",
    settlementIds,
    operator: address("4"),
    txNonce: 7,
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n,
  });
}

function end(payment: RequestRead["payment"], requestId: string): void {
  publish("answer", {
    serviceId,
    requestId,
    operation: "settle",
    payment,
    settlementId: payment.settlementId,
    status: 200,
    result: { outcome: "settled" },
    tookMs: 5,
  });
}

/** One HTTP request that asks this method for each of these payments or transactions. */
function callRpc(method: string, ...subjects: readonly Hex[]): void {
  publish("rpc", {
    serviceId,
    network: "base",
    endpoint: "1",
    purpose: "read",
    durationMs: 0,
    error: undefined,
    methods: [...subjects.map(() => method), "eth_getBalance"],
    about: new Map(subjects.map((subject) => [subject, [method]])),
  });
}

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const caller = (digit: string) => ({
  traceparent: `00-${digit.repeat(32)}-${digit.repeat(16)}-01`,
});

test("a transaction of several payments has a link to each, and each a link to it", () => {
  const payments = ["a", "b", "c"].map((digit) =>
    read(`request-${digit}`, digit, { headers: caller(digit) }),
  );
  for (const { settlementId } of payments) claim(settlementId);
  sign(
    hash("d"),
    payments.map(({ settlementId }) => settlementId),
  );
  transact({ serviceId, network: "base", transaction: hash("d"), step: "concluded", blockNumber: 5n });
  for (const { settlementId } of payments) {
    settle({ serviceId, settlementId, step: "settled", transaction: hash("d") });
  }
  const [transaction] = named("x402.transaction");
  const settlements = named("x402.settlement");
  expect(settlements.map((span) => span.spanContext().traceId)).toEqual(
    ["a", "b", "c"].map((digit) => digit.repeat(32)),
  );
  expect(transaction?.links.map(({ context }) => context.spanId)).toEqual(
    settlements.map((span) => span.spanContext().spanId),
  );
  for (const { links } of settlements) {
    expect(links.map(({ context }) => context.spanId)).toEqual([transaction?.spanContext().spanId]);
  }
  expect(transaction?.attributes).toMatchObject({ "x402.transaction.payments": 3, "x402.block.number": 5 });
});

test("a transaction that is replaced stays one span, with the hash that was mined", () => {
  const { settlementId } = read("request", "a");
  claim(settlementId);
  sign(hash("d"), [settlementId]);
  sign(hash("e"), []);
  transact({ serviceId, network: "base", transaction: hash("e"), step: "broadcast", everywhere: true });
  transact({ serviceId, network: "base", transaction: hash("e"), step: "concluded", blockNumber: 6n });
  const [transaction, ...others] = named("x402.transaction");
  expect(others).toEqual([]);
  expect(transaction?.events.map(({ name }) => name)).toEqual(["replaced", "broadcast"]);
  expect(transaction?.attributes).toMatchObject({ "x402.transaction.hash": hash("e") });
});

test("a request to a node belongs to what is checked, to a transaction in flight, or to nothing", () => {
  const payment = read("request", "a");
  const { settlementId } = payment;
  callRpc("eth_call", settlementId);
  callRpc("eth_blockNumber");
  claim(settlementId);
  callRpc("eth_call", settlementId);
  sign(hash("d"), [settlementId]);
  callRpc("eth_sendRawTransaction", hash("d"));
  transact({ serviceId, network: "base", transaction: hash("d"), step: "concluded", blockNumber: 5n });
  settle({ serviceId, settlementId, step: "settled", transaction: hash("d") });
  end(payment, "request");
  callRpc("eth_call", settlementId, hash("d"));
  expect(named("x402.rpc").map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
    ["x402.settle", "x402.settlement", "x402.transaction"].map(
      (name) => named(name)[0]?.spanContext().spanId,
    ),
  );
});

test("payments that share a request to a node have a span of it each, in their own traces", () => {
  const payments = ["a", "b", "c"].map((digit) => read(digit, digit, { headers: caller(digit) }));
  callRpc("eth_call", ...payments.slice(0, 2).map(({ settlementId }) => settlementId));
  for (const [index, payment] of payments.entries()) end(payment, ["a", "b", "c"][index] ?? "");
  const spans = named("x402.rpc");
  expect(spans.map((span) => span.spanContext().traceId)).toEqual(["a".repeat(32), "b".repeat(32)]);
  expect(spans.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
    named("x402.settle")
      .slice(0, 2)
      .map((span) => span.spanContext().spanId),
  );
  expect(spans.map(({ attributes }) => attributes)).toMatchObject(
    [1, 2].map(() => ({ "x402.rpc.methods": ["eth_call"], "x402.rpc.under_way": 2 })),
  );
});

test("a payment that comes again in another trace has a link to its first", () => {
  const first = read("first", "a", { operation: "verify", headers: caller("a") });
  end(first, "first");
  end(read("second", "a", { headers: caller("b") }), "second");
  expect(named("x402.settle")[0]?.links.map(({ context }) => context.traceId)).toEqual(["a".repeat(32)]);
});

test.each([
  ["no hexadecimal", `00-${"z".repeat(32)}-${"a".repeat(16)}-01`],
  ["all zeros", `00-${"0".repeat(32)}-${"a".repeat(16)}-01`],
  ["version ff", `ff-${"a".repeat(32)}-${"a".repeat(16)}-01`],
  ["too long", `00-${"a".repeat(32)}-${"a".repeat(16)}-01-${"x".repeat(600)}`],
])("a traceparent that is %s begins a new trace", (_name, traceparent) => {
  end(read("request", "a", { headers: { traceparent } }), "request");
  const [settle] = named("x402.settle");
  expect(settle?.parentSpanContext).toBeUndefined();
});

test("a recovery is a span in the trace of its payment", () => {
  const { settlementId } = read("request", "a", { headers: caller("a") });
  claim(settlementId);
  settle({ serviceId, settlementId, step: "failed", transaction: hash("d"), failure: "used elsewhere" });
  settle({ serviceId, settlementId, step: "recoveryQueued", directSubmission: hash("e") });
  settle({ serviceId, settlementId, step: "recoveryPostponed", problem: "no recoverer" });
  settle({ serviceId, settlementId, step: "recovered", transaction: hash("f") });
  const [settlement] = named("x402.settlement");
  const [recovery] = named("x402.recovery");
  expect(settlement?.status.message).toBe("used elsewhere");
  expect(recovery?.spanContext().traceId).toBe("a".repeat(32));
  expect(recovery?.events.map(({ name }) => name)).toEqual(["postponed"]);
  expect(recovery?.attributes).toMatchObject({ "x402.outcome": "recovered" });
});

test("a line of the log has the span of its request, of its transaction or of its payment", () => {
  const payment = read("request", "a", { headers: caller("a") });
  const ofRequest = (id: string) => tracing.logFields({}, () => id);
  expect(ofRequest("request")).toMatchObject({ traceId: "a".repeat(32) });
  expect(ofRequest("another")).toEqual({});
  end(payment, "request");
  expect(ofRequest("request")).toMatchObject({ traceId: "a".repeat(32) });
  const { settlementId: settlement } = payment;
  expect(tracing.logFields({ settlement }, () => undefined)).toMatchObject({ traceId: "a".repeat(32) });
  expect(tracing.logFields({ hash: "none" }, () => undefined)).toEqual({});
});

test("the messages of another service of the process make no spans", () => {
  end(read("request", "a", { serviceId: "another" }), "request");
  expect(named("x402.settle")[0]?.attributes).not.toHaveProperty("x402.payment.id");
});

test("an SDK that throws harms no payment", () => {
  tracing.close();
  const tracer = {
    startSpan: () => {
      throw new Error("the SDK is broken");
    },
  };
  tracing = createTracing(
    { ...api, trace: Object.assign(Object.create(api.trace), { getTracer: () => tracer }) },
    timeline,
  );
  expect(() => read("request", "a")).not.toThrow();
});
