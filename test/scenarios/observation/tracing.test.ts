import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { parsePaymentRequest } from "../../../src/methods/methods.ts";
import { paymentAnswerSchema } from "../../../src/observe/timeline/payment-view.ts";

const exporter = new InMemorySpanExporter();
let harness: Harness<"base">;
beforeAll(async () => {
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  harness = await createHarness({ networks: ["base"], studio: true });
});
afterAll(async () => {
  await harness.close();
  trace.disable();
});
beforeEach(() => exporter.reset());

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);

describe("a harness in a process with an SDK", () => {
  test("links the payments of a burst with the transactions that carry them", async () => {
    const bodies = await Promise.all(Array.from({ length: 8 }, () => harness.sign({ network: "base" })));
    await Promise.all(bodies.map((body) => harness.settle(body)));
    await expect.poll(() => named("x402.settlement")).toHaveLength(8);
    const transactions = named("x402.transaction");
    const settlements = named("x402.settlement");
    expect(new Set(settlements.map((span) => span.spanContext().traceId)).size).toBe(8);
    const idsOf = (spans: typeof settlements) => spans.map((span) => span.spanContext().spanId).sort();
    const linkedFrom = (spans: typeof settlements) =>
      spans.flatMap(({ links }) => links.map(({ context }) => context.spanId)).sort();
    expect(linkedFrom(transactions)).toEqual(idsOf(settlements));
    expect([...new Set(linkedFrom(settlements))]).toEqual(idsOf(transactions));
  });

  test("gives each of several payments at once its own calls to the node, in its trace and in its timeline", async () => {
    const payers = ["funded", "smartWallet", "empty", "funded", "smartWallet"] as const;
    const bodies = await Promise.all(payers.map((payer) => harness.sign({ network: "base", payer })));
    await Promise.all(bodies.map((body) => harness.settle(body)));
    await expect.poll(() => named("x402.transaction").length).toBeGreaterThan(0);
    await expect.poll(() => named("x402.settlement")).toHaveLength(4);

    const simulation = "eth_getBlockByNumber, eth_call, eth_call, eth_getBalance, eth_maxPriorityFeePerGas";
    const whileChecked = {
      funded: [simulation],
      smartWallet: ["eth_call", simulation],
      empty: [simulation, "eth_call"],
    };
    for (const [index, payer] of payers.entries()) {
      const parsed = parsePaymentRequest(bodies[index]);
      if (!parsed.ok) throw new Error(parsed.invalid.reason);
      const id = parsed.request.settlementId;
      const [settle] = named("x402.settle").filter(({ attributes }) => attributes["x402.payment.id"] === id);
      const traced = named("x402.rpc").filter(
        ({ parentSpanContext }) => parentSpanContext?.spanId === settle?.spanContext().spanId,
      );
      expect(traced.map(({ attributes }) => [attributes["x402.rpc.methods"]].flat().join(", "))).toEqual(
        whileChecked[payer],
      );

      const answer = await fetch(`${harness.facilitator.url.replace(/v1$/, "payments")}/${id}`);
      const { timeline } = paymentAnswerSchema.parse(await answer.json()).payment;
      const told = timeline.flatMap(({ kind, title }) => (kind === "rpc" ? title : []));
      const sent = payer === "empty" ? [] : ["eth_sendRawTransaction", "eth_getTransactionReceipt"];
      // A node may answer the first question for a receipt before it has answered the transaction.
      expect(new Set(told)).toEqual(new Set([...whileChecked[payer], ...sent]));
    }
  });

  test("says why a payment was refused, and which check did", async () => {
    const body = await harness.sign({ network: "base", payer: "empty" });
    await harness.verify(body);
    await expect.poll(() => named("x402.verify")).toHaveLength(1);
    expect(named("x402.verify").map(({ attributes }) => attributes)).toMatchObject([
      {
        "x402.outcome": "invalid",
        "x402.reason": "insufficient_funds",
        "x402.check": expect.any(String),
        "x402.network": "base",
      },
    ]);
  });

  test("says how a payment is paid", async () => {
    await harness.pay({ network: "base", scheme: "upto", max: 2n, amount: 1n });
    await expect.poll(() => named("x402.settlement")).toHaveLength(1);
    for (const name of ["x402.verify", "x402.settle", "x402.settlement"]) {
      expect(
        named(name).map(({ attributes }) => attributes["x402.method"]),
        name,
      ).toEqual(["upto-permit2"]);
    }
  });

  test("traces on after a reset, where txNonces begin again", async () => {
    await harness.reset();
    exporter.reset();
    await harness.settle(await harness.sign({ network: "base" }));
    await expect.poll(() => named("x402.transaction")).toHaveLength(1);
    expect(named("x402.transaction")[0]?.events.map(({ name }) => name)).not.toContain("replaced");
  });
});
