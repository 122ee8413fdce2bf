import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { requestJson } from "../../../src/util/http-client.ts";
import { attributeOf, type ReceivedSpan, startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { startCommand } from "../../support/serve/command.ts";
import { signPayment, startDeployedShop } from "../../support/serve/shop.ts";

const setup = new URL("../../support/serve/opentelemetry.mjs", import.meta.url);

test("serve sends the trace of a payment to an OTLP collector, as the guide says", async () => {
  await using receiver = await startOtlpReceiver();
  const { deployed, key } = await startDeployedShop();
  try {
    const command = startCommand(
      ["serve"],
      {
        ...deployed.variables,
        CONFIRMATIONS: "base=1",
        NODE_OPTIONS: `--import ${fileURLToPath(setup)}`,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: receiver.url,
      },
      "/",
    );
    await using _ = command;
    const { url }: { url: string } = JSON.parse(await command.logged(/"serving"/));
    const body = await signPayment(deployed);
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const post = (operation: string, headers: Record<string, string> = {}) =>
      requestJson(`${url}/${operation}`, {
        method: "POST",
        headers: { authorization: key, ...headers },
        body,
      });
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    expect((await post("verify", { traceparent })).body).toMatchObject({ isValid: true });
    // Without a trace of its own: it continues the payment's.
    expect((await post("settle")).body).toMatchObject({ success: true });
    await command.logged(/payment settled/);
    command.kill("SIGTERM");
    const { code, stderr } = await command.ended;
    expect(code).toBe(0);

    const named = (name: string): ReceivedSpan[] => receiver.spans.filter((span) => span.name === name);
    const [verify, settle] = [...named("x402.verify"), ...named("x402.settle")];
    const [settlement] = named("x402.settlement");
    const [transaction] = named("x402.transaction");
    if (!verify || !settle || !settlement || !transaction) throw new Error(JSON.stringify(receiver.spans));
    expect(verify).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", kind: 2 });
    expect(settle).toMatchObject({ traceId, parentSpanId: verify.spanId });
    expect(settlement).toMatchObject({ traceId, parentSpanId: settle.spanId });
    expect(transaction).toMatchObject({ traceId, parentSpanId: settlement.spanId });
    expect(transaction.links).toMatchObject([{ traceId, spanId: settlement.spanId }]);
    expect(settlement.links).toMatchObject([{ traceId, spanId: transaction.spanId }]);
    expect(transaction.events.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["broadcast", "receipt"]),
    );
    expect(attributeOf(verify, "x402.outcome")).toBe("valid");
    expect(attributeOf(settle, "x402.outcome")).toBe("settled");
    expect(attributeOf(settle, "http.response.status_code")).toBe("200");
    expect(attributeOf(settlement, "x402.transaction.hash")).toBe(
      attributeOf(transaction, "x402.transaction.hash"),
    );
    const callsOf = (parent: ReceivedSpan) =>
      named("x402.rpc").filter(({ parentSpanId }) => parentSpanId === parent.spanId);
    expect(callsOf(verify)).toHaveLength(1);
    expect(callsOf(settle).length).toBeGreaterThan(0);
    expect(callsOf(transaction).map((span) => attributeOf(span, "x402.rpc.purpose"))).toContain("send");

    const sent = JSON.stringify(receiver.spans);
    for (const secret of [key, body.paymentPayload.payload.signature, "http://"]) {
      expect(sent).not.toContain(secret);
    }
    const lines = stderr.split("\n").filter((line) => line.includes(traceId));
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(
      expect.arrayContaining(["request", "transaction signed", "payment settled"]),
    );
  } finally {
    await deployed.stop();
  }
});

test("the guide has the file that this test ran", async () => {
  const guide = await readFile(new URL("../../../docs/observability.md", import.meta.url), "utf8");
  const file = await readFile(setup, "utf8");
  expect(guide).toContain(file.slice(file.indexOf("\n") + 1).trim());
});
