import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";

const exporter = new InMemorySpanExporter();
let harness: Harness<"base">;
beforeAll(async () => {
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  harness = await createHarness({ networks: ["base"] });
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

  test("traces on after a reset, where txNonces begin again", async () => {
    await harness.reset();
    exporter.reset();
    await harness.settle(await harness.sign({ network: "base" }));
    await expect.poll(() => named("x402.transaction")).toHaveLength(1);
    expect(named("x402.transaction")[0]?.events.map(({ name }) => name)).not.toContain("replaced");
  });
});
