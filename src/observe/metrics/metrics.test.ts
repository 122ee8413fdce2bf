import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import type { Metrics } from "./metrics.ts";
import { createMetrics } from "./metrics.ts";

let time: number;
let metrics: Metrics;
/** The exposition's lines that begin with a name. */
let lines: (prefix: string) => Promise<string[]>;

beforeEach(async () => {
  time = 1_000_000;
  const created = await createMetrics({ now: () => time });
  metrics = created.metrics;
  lines = async (prefix) =>
    (await created.register.metrics()).split("\n").filter((line) => line.startsWith(prefix));
});

const operator = "0x00000000000000000000000000000000000000aa";

describe("what is counted", () => {
  test("requests are counted by operation, outcome, reason, version and network, and timed", async () => {
    const settle = {
      operation: "settle",
      x402Version: 2,
      network: "base",
      method: "exact-permit2",
      seconds: 2.5,
    } as const;
    metrics.payment({ ...settle, outcome: "settled", reason: undefined });
    metrics.payment({ ...settle, outcome: "invalid", reason: "insufficient_funds" });
    expect(await lines("x402_requests_total")).toEqual([
      'x402_requests_total{operation="settle",outcome="settled",reason="none",version="2",network="base",method="exact-permit2"} 1',
      'x402_requests_total{operation="settle",outcome="invalid",reason="insufficient_funds",version="2",network="base",method="exact-permit2"} 1',
    ]);
    expect(await lines('x402_settle_duration_seconds_bucket{le="2",outcome="settled"')).toEqual([
      'x402_settle_duration_seconds_bucket{le="2",outcome="settled",network="base"} 0',
    ]);
    expect(await lines('x402_settle_duration_seconds_bucket{le="3",outcome="settled"')).toEqual([
      'x402_settle_duration_seconds_bucket{le="3",outcome="settled",network="base"} 1',
    ]);
  });

  test("a request that names neither network nor version has labels for that", async () => {
    metrics.payment({
      operation: "verify",
      outcome: "refused",
      reason: "unauthorized",
      x402Version: undefined,
      network: undefined,
      method: undefined,
      seconds: 0.001,
    });
    expect(await lines("x402_requests_total")).toEqual([
      'x402_requests_total{operation="verify",outcome="refused",reason="unauthorized",version="none",network="none",method="none"} 1',
    ]);
  });

  test("gifts are counted by network, and summed up in wei", async () => {
    for (const wei of [1_000n, 234n]) metrics.gift("base", wei);
    expect(await lines("x402_gifts")).toEqual([
      'x402_gifts_total{network="base"} 2',
      'x402_gifts_wei_total{network="base"} 1234',
    ]);
  });

  test("gifts that are not made are counted by why", async () => {
    for (const reason of ["day", "coins", "day"] as const) metrics.giftRefused("base", reason);
    expect(await lines("x402_gifts_refused")).toEqual([
      'x402_gifts_refused_total{network="base",reason="day"} 2',
      'x402_gifts_refused_total{network="base",reason="coins"} 1',
    ]);
  });

  test("RPC requests and errors are counted by network, place and host of the endpoint", async () => {
    const base = metrics.rpc("base", ["base.example", "base-2.example"]);
    base.exchanged({ endpoint: "1", purpose: "read", durationMs: 30, error: undefined });
    base.exchanged({ endpoint: "2", purpose: "send", durationMs: 10_000, error: "timeout" });
    expect(await lines("x402_rpc_requests_total")).toEqual([
      'x402_rpc_requests_total{network="base",endpoint="1",provider="base.example",purpose="read"} 1',
      'x402_rpc_requests_total{network="base",endpoint="2",provider="base-2.example",purpose="send"} 1',
    ]);
    expect(await lines("x402_rpc_errors_total")).toEqual([
      'x402_rpc_errors_total{network="base",endpoint="2",provider="base-2.example",error="timeout"} 1',
    ]);
  });

  test("a thousand unforeseen reasons make few series", async () => {
    for (let index = 0; index < 1_000; index++) {
      metrics.payment({
        operation: "verify",
        outcome: "invalid",
        reason: `reason ${index}`,
        x402Version: 1,
        network: "base",
        method: "exact-eip3009",
        seconds: 0,
      });
    }
    const series = await lines("x402_requests_total");
    expect(series.length).toBeLessThan(70);
    expect(series.at(-1)).toContain('reason="other"');
  });
});

describe("what is looked up", () => {
  test("nothing without sources", async () => {
    expect(await lines("x402_settlements_in_flight")).toEqual([]);
    expect(await lines("x402_operator_balance")).toEqual([]);
  });

  test("what is in flight, what waits, and for how long", async () => {
    metrics.observe({
      lanes: () => [
        {
          network: "base",
          operator,
          transactions: 16,
          queued: 40,
          vanished: 3,
          unconfirmed: 2,
          unproven: 0,
          canSend: true,
          isLow: true,
        },
      ],
      pending: async () => [
        { network: "base", count: 56, oldestClaimedAt: time - 90_000 },
        { network: "polygon", count: 0, oldestClaimedAt: null },
      ],
      directSubmissions: async () => [{ network: "base", state: "queued", count: 4 }],
      underWay: () => ({ verify: 2, settle: 96 }),
    });
    expect(await lines("x402_unconfirmed_transactions")).toEqual([
      `x402_unconfirmed_transactions{network="base",operator="${operator}"} 2`,
    ]);
    expect(await lines("x402_direct_submissions")).toEqual([
      `x402_direct_submissions{network="base",state="queued"} 4`,
    ]);
    expect(await lines("x402_transactions_in_flight")).toEqual([
      `x402_transactions_in_flight{network="base",operator="${operator}"} 16`,
    ]);
    expect(await lines("x402_queued_payments")).toEqual([
      `x402_queued_payments{network="base",operator="${operator}"} 40`,
    ]);
    expect(await lines("x402_vanished_transactions")).toEqual([
      `x402_vanished_transactions{network="base",operator="${operator}"} 3`,
    ]);
    expect(await lines("x402_settlements_in_flight")).toEqual([
      'x402_settlements_in_flight{network="base"} 56',
      'x402_settlements_in_flight{network="polygon"} 0',
    ]);
    expect(await lines("x402_oldest_pending_settlement_seconds")).toEqual([
      'x402_oldest_pending_settlement_seconds{network="base"} 90',
      'x402_oldest_pending_settlement_seconds{network="polygon"} 0',
    ]);
    expect(await lines("x402_requests_in_flight")).toEqual([
      'x402_requests_in_flight{operation="verify"} 2',
      'x402_requests_in_flight{operation="settle"} 96',
    ]);
  });

  test("the part of a day's gifts that is given, all of it where there are none", async () => {
    metrics.observe({
      gifts: async () => [
        { network: "base", given: 3n * 10n ** 15n, limit: 10n ** 16n },
        { network: "polygon", given: 0n, limit: 0n },
      ],
    });
    expect(await lines("x402_gifts_day_ratio")).toEqual([
      'x402_gifts_day_ratio{network="base"} 0.3',
      'x402_gifts_day_ratio{network="polygon"} 1',
    ]);
  });

  test("an operator's gas money in wei and in settlements", async () => {
    metrics.observe({
      funds: async () => [
        { network: "polygon", operator, balance: 10n ** 18n, transactionCost: 3n * 10n ** 16n },
      ],
    });
    expect(await lines("x402_operator_balance")).toEqual([
      `x402_operator_balance_wei{network="polygon",operator="${operator}"} 1000000000000000000`,
      `x402_operator_balance_transactions{network="polygon",operator="${operator}"} 33`,
    ]);
  });

  test("concurrent scrapes ask a source once", async () => {
    let asked = 0;
    metrics.observe({
      funds: async () => {
        asked++;
        return [];
      },
    });
    await Promise.all(Array.from({ length: 20 }, () => lines("x402")));
    expect(asked).toBe(1);
  });

  test("a source that fails is counted, and the others still answer", async () => {
    metrics.observe({
      funds: () => Promise.reject(new Error("no RPC")),
      health: async () => ({ base: { ready: true }, polygon: { ready: false } }),
    });
    expect(await lines("x402_operator_balance")).toEqual([]);
    expect(await lines("x402_network_ready")).toEqual([
      'x402_network_ready{network="base"} 1',
      'x402_network_ready{network="polygon"} 0',
    ]);
    expect(await lines("x402_metric_source_failures_total")).toEqual([
      'x402_metric_source_failures_total{source="funds"} 1',
    ]);
  });

  test("a source that hangs does not hang the scrape", async () => {
    metrics.observe({
      funds: () => new Promise(() => {}),
      pending: async () => [{ network: "base", count: 1, oldestClaimedAt: time }],
    });
    expect(await lines("x402_settlements_in_flight")).toHaveLength(1);
  });
});

test("docs/observability.md has every metric of ours, and no other", async () => {
  const { register } = await createMetrics();
  const ours = (await register.getMetricsAsJSON())
    .map(({ name }) => name)
    .filter((name) => name.startsWith("x402_"));
  const guide = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8");
  const table = [...guide.matchAll(/^\| `(x402_\w+)`/gm)].map(([, name]) => name);
  expect(table.toSorted()).toEqual(ours.toSorted());
  for (const [name] of guide.matchAll(/x402_\w+/g)) expect(ours).toContain(name);
});
