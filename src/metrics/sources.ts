import type * as promClient from "prom-client";
import { memoizeFor } from "../util/memoize-for.ts";
import { withTimeout } from "../util/with-timeout.ts";
import type { LaneLoad, MetricSources, Metrics } from "./metrics.ts";

/** How old the answer of a source may be, milliseconds: the ledger is ours, the funds cost requests to a provider. */
const maxAgeMs = { pending: 5_000, funds: 30_000, health: 5_000 };

/** Prometheus gives a scrape 10 s: one source that hangs must not take the others along. */
const timeoutMs = 3_000;

/** One value of a gauge. */
type Sample = { labels: Record<string, string>; value: number };

/**
 * Makes the gauges that are looked up when the metrics are read. A source that fails gives no values, instead of old
 * ones, and is counted.
 */
export function observeSources(options: {
  client: Pick<typeof promClient, "Counter" | "Gauge">;
  register: promClient.Registry;
  now: () => number;
}): Metrics["observe"] {
  const { client, register, now } = options;
  const sources: Partial<MetricSources> = {};
  const failures = new client.Counter({
    name: "x402_metric_source_failures_total",
    help: "Values that could not be looked up, by where they come from",
    labelNames: ["source"],
    registers: [register],
  });

  function lookUp<T>(
    name: keyof typeof maxAgeMs,
    ask: () => Promise<T> | undefined,
  ): () => Promise<T | undefined> {
    return memoizeFor(
      async () => {
        try {
          const asked = ask();
          return asked && (await withTimeout(asked, timeoutMs));
        } catch {
          failures.inc({ source: name });
          return undefined;
        }
      },
      { maxAgeMs: maxAgeMs[name] },
    );
  }

  function gauge(
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly Sample[] | Promise<readonly Sample[]>,
  ): void {
    new client.Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [register],
      async collect() {
        const samples = await read();
        this.reset();
        for (const { labels, value } of samples) this.set(labels, value);
      },
    });
  }

  const pending = lookUp("pending", () => sources.pending?.());
  const funds = lookUp("funds", () => sources.funds?.());
  const health = lookUp("health", () => sources.health?.());
  const perNetwork = ["network"];
  const perOperator = ["network", "operator"];

  gauge("x402_requests_in_flight", "Verify and settle requests that are being answered", ["operation"], () =>
    Object.entries(sources.underWay?.() ?? {}).map(([operation, value]) => ({
      labels: { operation },
      value,
    })),
  );
  const ofLanes = (name: string, help: string, read: (lane: LaneLoad) => number) =>
    gauge(name, help, ["network", "operator"], () =>
      (sources.lanes?.() ?? []).map((lane) => ({
        labels: { network: lane.network, operator: lane.operator },
        value: read(lane),
      })),
    );
  ofLanes(
    "x402_transactions_in_flight",
    "Transactions of this process that no block is known to hold",
    ({ transactions }) => transactions,
  );
  ofLanes(
    "x402_queued_payments",
    "Payments of this process that wait unsigned for their turn",
    ({ queued }) => queued,
  );
  ofLanes(
    "x402_vanished_transactions",
    "Transactions of this process that a block held which has vanished from the chain, and that are not mined again",
    ({ vanished }) => vanished,
  );
  ofLanes(
    "x402_operator_can_send",
    "1 for an operator that can settle, 0 for one without its role, gas money or signer",
    ({ canSend }) => Number(canSend),
  );
  gauge(
    "x402_operator_gas_money_low",
    "1 for an operator that can pay for fewer settlements than GAS_HORIZON_PAYMENTS, at the last inspection",
    perOperator,
    () =>
      (sources.lanes?.() ?? []).map(({ network, operator, isLow }) => ({
        labels: { network, operator },
        value: isLow ? 1 : 0,
      })),
  );
  gauge("x402_settlements_in_flight", "Settlements in the ledger without an outcome", perNetwork, async () =>
    ((await pending()) ?? []).map(({ network, count }) => ({ labels: { network }, value: count })),
  );
  gauge(
    "x402_oldest_pending_settlement_seconds",
    "Age of the oldest settlement in the ledger without an outcome; 0 when there is none",
    perNetwork,
    async () =>
      ((await pending()) ?? []).map(({ network, oldestClaimedAt }) => ({
        labels: { network },
        value: oldestClaimedAt === null ? 0 : Math.max(0, now() - oldestClaimedAt) / 1_000,
      })),
  );
  gauge("x402_operator_balance_wei", "Gas money of an operator", perOperator, async () =>
    ((await funds()) ?? []).map(({ network, operator, balance }) => ({
      labels: { network, operator },
      value: Number(balance),
    })),
  );
  gauge(
    "x402_operator_balance_transactions",
    "Settlements that an operator can pay for at what one may cost now",
    perOperator,
    async () =>
      ((await funds()) ?? []).map(({ network, operator, balance, transactionCost }) => ({
        labels: { network, operator },
        value: transactionCost > 0n ? Number(balance / transactionCost) : 0,
      })),
  );
  gauge(
    "x402_network_ready",
    "1 for a network that can be asked, 0 for one that cannot",
    perNetwork,
    async () =>
      Object.entries((await health()) ?? {}).map(([network, { ready }]) => ({
        labels: { network },
        value: Number(ready),
      })),
  );

  return (added) => {
    Object.assign(sources, added);
  };
}
