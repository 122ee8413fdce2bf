import type * as promClient from "prom-client";
import { memoizeFor } from "../../util/cache.ts";
import { withTimeout } from "../../util/with-timeout.ts";
import type { LaneLoad, MetricSources, Metrics, OperatorFunds } from "./metrics.ts";

/** How old the answer of a source may be, in milliseconds; funds cost requests to a provider. */
const maxAgeMs = { pending: 5_000, directSubmissions: 5_000, funds: 30_000, health: 5_000 };

/** Prometheus gives a scrape 10 s: one source that hangs must not delay the others. */
const timeoutMs = 3_000;

/** One value of a gauge. */
type Sample = {
  labels: { network?: string; operator?: string; operation?: string; state?: string };
  value: number;
};

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

  function gauge<Item>(
    name: string,
    help: string,
    read: () => readonly Item[] | undefined | Promise<readonly Item[] | undefined>,
    sample: (item: Item) => Sample,
    labelNames: readonly (keyof Sample["labels"])[] = ["network"],
  ): void {
    new client.Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [register],
      async collect() {
        const items = await read();
        this.reset();
        for (const { labels, value } of items?.map(sample) ?? []) this.set(labels, value);
      },
    });
  }

  const pending = lookUp("pending", () => sources.pending?.());
  const directSubmissions = lookUp("directSubmissions", () => sources.directSubmissions?.());
  const funds = lookUp("funds", () => sources.funds?.());
  const health = lookUp("health", () => sources.health?.());
  const perOperator = ["network", "operator"] as const;
  const ofLanes = (name: string, help: string, measure: (lane: LaneLoad) => number) =>
    gauge(
      name,
      help,
      () => sources.lanes?.(),
      (lane) => ({ labels: { network: lane.network, operator: lane.operator }, value: measure(lane) }),
      perOperator,
    );
  const ofFunds = (name: string, help: string, measure: (funds: OperatorFunds) => number) =>
    gauge(
      name,
      help,
      funds,
      (one) => ({ labels: { network: one.network, operator: one.operator }, value: measure(one) }),
      perOperator,
    );

  gauge(
    "x402_requests_in_flight",
    "Verify and settle requests that are being answered",
    () => Object.entries(sources.underWay?.() ?? {}),
    ([operation, value]) => ({ labels: { operation }, value }),
    ["operation"],
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
    "x402_unconfirmed_transactions",
    "Transactions of this process in blocks that fewer than two RPC endpoints have shown for half a minute, or that two say different things of",
    ({ unconfirmed }) => unconfirmed,
  );
  ofLanes(
    "x402_operator_can_send",
    "1 for an operator that can settle, 0 for one without its role, gas money or signer",
    ({ canSend }) => Number(canSend),
  );
  ofLanes(
    "x402_operator_gas_money_low",
    "1 for an operator that can pay for fewer settlements than GAS_HORIZON_PAYMENTS, at the last inspection",
    ({ isLow }) => Number(isLow),
  );
  gauge(
    "x402_settlements_in_flight",
    "Settlements in the ledger without an outcome",
    pending,
    ({ network, count }) => ({ labels: { network }, value: count }),
  );
  gauge(
    "x402_oldest_pending_settlement_seconds",
    "Age of the oldest settlement in the ledger without an outcome; 0 when there is none",
    pending,
    ({ network, oldestClaimedAt }) => ({
      labels: { network },
      value: oldestClaimedAt === null ? 0 : Math.max(0, now() - oldestClaimedAt) / 1_000,
    }),
  );
  gauge(
    "x402_direct_submissions",
    "Payments in the ledger that somebody submitted directly to the token: queued, sent (the forward is signed) or forwarded",
    directSubmissions,
    ({ network, state, count }) => ({ labels: { network, state }, value: count }),
    ["network", "state"],
  );
  ofFunds("x402_operator_balance_wei", "Gas money of an operator", ({ balance }) => Number(balance));
  ofFunds(
    "x402_operator_balance_transactions",
    "Settlements that an operator can pay for at what one may cost now",
    ({ balance, transactionCost }) => (transactionCost > 0n ? Number(balance / transactionCost) : 0),
  );
  gauge(
    "x402_network_ready",
    "1 for a network that can be asked, 0 for one that cannot",
    async () => Object.entries((await health()) ?? {}),
    ([network, { ready }]) => ({ labels: { network }, value: Number(ready) }),
  );

  return (added) => {
    Object.assign(sources, added);
  };
}
