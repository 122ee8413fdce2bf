import { afterEach, describe, expect, test } from "vitest";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { createMetrics } from "../../../src/observe/metrics/metrics.ts";
import { invalid } from "../../../src/protocol/catalogue.ts";
import { createMetricsApp } from "../../../src/service/http/app.ts";
import { UndeterminedError } from "../../../src/util/errors.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { goodKey, paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * The metrics for Prometheus, and who can read them.
 */

let app: StubApp;
let register: Awaited<ReturnType<typeof createMetrics>>["register"];
afterEach(() => app.close());

async function start(options: Parameters<typeof startStubApp>[0] = {}): Promise<void> {
  const created = await createMetrics();
  register = created.register;
  app = await startStubApp({ metrics: created.metrics, ...options });
}
const lines = async (prefix: string) =>
  (await register.metrics()).split("\n").filter((line) => line.startsWith(prefix));
const post = (operation: "verify" | "settle", body: unknown = paymentBody(), key = goodKey) =>
  requestJson(`${app.origin}/v1/${operation}`, { method: "POST", headers: { authorization: key }, body });
const hash = `0x${"7a".repeat(32)}` as const;

describe("requests", () => {
  test("are counted by how they ended, every end in its own series", async () => {
    await start();
    await post("verify");
    await post("verify", paymentBody(), "bad key");
    await post("verify", paymentBody({ network: "solana" }));
    const settled = post("settle");
    (await app.settle(0)).succeed();
    await settled;
    const poor = post("settle");
    (await app.settle(1)).answer({
      kind: "invalid",
      invalid: invalid("balance_too_small", "poor"),
    });
    await poor;
    const pending = post("settle");
    (await app.settle(2)).answer({ kind: "pending", transaction: hash });
    await pending;
    const unknown = post("settle");
    (await app.settle(3)).fail(new UndeterminedError("down"));
    await unknown;
    const connection = await openRawConnection(app.port);
    connection.send(postText("/v1/settle", paymentBody()));
    await app.settle(4);
    connection.end();

    const series = (rest: string) => `x402_requests_total{${rest}} 1`;
    await expect
      .poll(() => lines("x402_requests_total"))
      .toEqual([
        series(
          'operation="verify",outcome="valid",reason="none",version="1",network="base",method="exact-eip3009"',
        ),
        series(
          'operation="verify",outcome="refused",reason="unauthorized",version="none",network="none",method="none"',
        ),
        series(
          'operation="verify",outcome="invalid",reason="invalid_network",version="1",network="none",method="none"',
        ),
        series(
          'operation="settle",outcome="settled",reason="none",version="1",network="base",method="exact-eip3009"',
        ),
        series(
          'operation="settle",outcome="invalid",reason="insufficient_funds",version="1",network="base",method="exact-eip3009"',
        ),
        series(
          'operation="settle",outcome="pending",reason="none",version="1",network="base",method="exact-eip3009"',
        ),
        series(
          'operation="settle",outcome="undetermined",reason="undetermined",version="1",network="base",method="exact-eip3009"',
        ),
        series(
          'operation="settle",outcome="abandoned",reason="none",version="1",network="base",method="exact-eip3009"',
        ),
      ]);
    expect(await lines('x402_settle_duration_seconds_count{outcome="settled"')).toEqual([
      'x402_settle_duration_seconds_count{outcome="settled",network="base"} 1',
    ]);
    expect(await lines("x402_deliveries_total")).toEqual(['x402_deliveries_total{fate="delivered"} 1']);
  });

  test("with hundreds of made-up networks and paths make no series of their own", async () => {
    await start();
    await post("verify", paymentBody({ network: "solana" }));
    await requestJson(`${app.origin}/nowhere`);
    const before = (await lines("x402_")).length;
    for (let index = 0; index < 300; index++) {
      await post("verify", paymentBody({ network: `network-${index}` }));
      await requestJson(`${app.origin}/path-${index}`);
    }
    expect((await lines("x402_")).length).toBe(before);
    expect(await lines('x402_http_responses_total{route="none"')).toEqual([
      'x402_http_responses_total{route="none",status="404"} 301',
    ]);
  });

  test("that are turned away are counted too", async () => {
    await start({
      rateLimits: { key: { burst: 1, perSecond: 0.01 }, address: { burst: 100, perSecond: 100 } },
    });
    await post("verify");
    await post("verify");
    await expect
      .poll(() => lines('x402_requests_total{operation="verify",outcome="refused"'))
      .toEqual([
        'x402_requests_total{operation="verify",outcome="refused",reason="too-many-requests",version="none",network="none",method="none"} 1',
      ]);
  });
});

describe("GET /metrics", () => {
  test("is nowhere on the service's own port", async () => {
    await start();
    expect((await requestJson(`${app.origin}/metrics`)).status).toBe(404);
  });

  test("is on a server of its own, which knows nothing else", async () => {
    await start();
    await post("verify");
    const server = createMetricsApp(register, createLogger("silent"));
    const origin = await server.listen({ host: "127.0.0.1", port: 0 });
    const response = await fetch(`${origin}/metrics`);
    expect(response.headers.get("content-type")).toContain("text/plain; version=0.0.4");
    const text = await response.text();
    expect(text).toContain("x402_requests_total{");
    expect(text).toContain("nodejs_eventloop_lag_p99_seconds ");
    expect(text).toContain("process_resident_memory_bytes ");
    expect((await fetch(`${origin}/v1/supported`)).status).toBe(404);
    await server.close();
  });
});
