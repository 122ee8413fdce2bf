import { trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { channels } from "../../../src/observe/channels/channels.ts";
import { createTimeline } from "../../../src/observe/timeline/timeline.ts";
import { openTracing } from "../../../src/observe/tracing/tracing.ts";
import { composeRecovery } from "../../support/recovery-scene.ts";

test("a payment that a stranger submitted is traced until it is paid out", async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  const scene = await composeRecovery();
  try {
    await scene.openDirectory();
    let serviceId = "";
    const unsubscribe = channels.rpc.subscribe((message) => {
      serviceId = message.serviceId;
    });
    const running = await scene.startService();
    unsubscribe();
    const timeline = createTimeline(serviceId);
    const tracing = await openTracing(() => timeline);
    const body = await scene.sign("funded");
    const release = await scene.holdMining();
    const { answer } = await scene.settleInPool(running, body);
    await scene.sendAhead(scene.submission(body));
    await scene.chain.node.request("evm_mine");
    await release();
    expect((await answer).body).toMatchObject({ success: true });
    const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
    await expect.poll(() => named("x402.recovery")).toHaveLength(1);
    await expect.poll(() => named("x402.transaction")).toHaveLength(2);
    tracing?.close();
    timeline.close();

    const [recovery] = named("x402.recovery");
    expect(recovery?.attributes).toMatchObject({
      "x402.outcome": "recovered",
      "x402.recovery.direct_submission": expect.stringMatching(/^0x/),
    });
    const spans = [...named("x402.settle"), ...named("x402.transaction"), ...named("x402.recovery")];
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(named("x402.transaction").map(({ attributes }) => attributes["x402.transaction.kind"])).toEqual([
      "settle",
      "forward",
    ]);
  } finally {
    await scene.clear();
    await scene.close();
    trace.disable();
  }
});
