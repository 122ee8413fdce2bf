import type { Registry } from "prom-client";
import type { NetworkName } from "../../protocol/networks.ts";
import type { DeliveryFate, PaymentOutcome } from "../channels/channels.ts";
import { type MetricSources, observeSources } from "./sources.ts";

export type EndedPayment = {
  operation: "verify" | "settle";
  outcome: PaymentOutcome;
  /** Why it is not good, or not answered: one of the invalid reasons, or the name of a problem. */
  reason: string | undefined;
  /** Undefined when the body was not read. */
  x402Version: 1 | 2 | undefined;
  /** Undefined when the request names none that is known. */
  network: NetworkName | undefined;
  /** How it is paid, `SignedPayment.method`; undefined when the body is not a well-formed payment. */
  method: string | undefined;
  seconds: number;
};

/** One HTTP request to a JSON-RPC endpoint that is over. */
export type RpcExchange = {
  /** Which endpoint, by its place in the configuration. Never its URL, which may hold a key. */
  endpoint: string;
  purpose: string;
  durationMs: number;
  /** The problem, in a word; undefined if the answer was used. */
  error: string | undefined;
};

/**
 * Why the sponsor gives a payer nothing: more than is given at once, or on one day, or for the payments of one organization; or the
 * sponsor does not have it.
 */
export type GiftRefusal = "payment" | "day" | "organization" | "coins";

/** Where the parts of the service count. Nothing here throws or waits. */
export type Metrics = {
  payment(record: EndedPayment): void;
  /** `route` as it was registered, never as it was asked for; undefined when there is none. */
  http(route: string | undefined, status: number): void;
  delivery(fate: DeliveryFate): void;
  /** Gas money that the sponsor gave to a payer, in wei. */
  gift(network: NetworkName, wei: bigint): void;
  /** A payer's announcement that it withdraws from a channel. */
  withdrawal(network: NetworkName): void;
  /** Gas money that the sponsor did not give. */
  giftRefused(network: NetworkName, reason: GiftRefusal): void;
  /**
   * Counts what one network's RPC client does with its endpoints. `providers` are their hosts, in the order of the
   * configuration.
   */
  rpc(network: NetworkName, providers: readonly string[]): { exchanged(exchange: RpcExchange): void };
  /** Names sources; those named before stay. */
  observe(sources: Partial<MetricSources>): void;
};

const nothing = () => {};

/** Counts nothing. */
export const noMetrics: Metrics = {
  payment: nothing,
  http: nothing,
  delivery: nothing,
  gift: nothing,
  withdrawal: nothing,
  giftRefused: nothing,
  rpc: () => ({ exchanged: nothing }),
  observe: nothing,
};

/** Seconds. Verify is a request to a node; settle waits for a block, as long as it is configured to. */
const verifyBuckets = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const settleBuckets = [0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 21, 34, 55, 90];
const rpcBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Metrics for Prometheus. `metrics` goes to the parts of the service, `register` to what serves them; see
 * `createMetricsApp`.
 *
 * prom-client is loaded here and not at the top: it takes 0.3 s, which only a service with metrics should spend.
 */
export async function createMetrics(
  options: { now?: () => number } = {},
): Promise<{ metrics: Metrics; register: Registry }> {
  const { now = () => Date.now() } = options;
  const client = await import("prom-client");
  const register = new client.Registry();
  client.collectDefaultMetrics({ register });
  const { payments, durations, answers, deliveries, gifts, giftsWei, giftsRefused, withdrawals, ...rpc } =
    defineMetrics(client, register);
  const observe = observeSources({ client, register, now });

  const reasons = capLabels(64);
  const endpoints = capLabels(16);
  const words = capLabels(32);

  const metrics: Metrics = {
    payment({ operation, outcome, reason, x402Version, network = "none", method = "none", seconds }) {
      payments.inc({
        operation,
        outcome,
        reason: reason === undefined ? "none" : reasons(reason),
        version: x402Version ?? "none",
        network,
        method,
      });
      durations[operation].observe({ outcome, network }, seconds);
    },
    http(route = "none", status) {
      answers.inc({ route, status });
    },
    delivery(fate) {
      deliveries.inc({ fate });
    },
    gift(network, wei) {
      gifts.inc({ network });
      giftsWei.inc({ network }, Number(wei));
    },
    withdrawal(network) {
      withdrawals.inc({ network });
    },
    giftRefused(network, reason) {
      giftsRefused.inc({ network, reason });
    },
    rpc: (network, providers) => ({
      exchanged({ endpoint, purpose, durationMs, error }) {
        const provider = providers[Number(endpoint) - 1] ?? "none";
        const labels = { network, endpoint: endpoints(endpoint), provider };
        rpc.requests.inc({ ...labels, purpose: words(purpose) });
        rpc.duration.observe(labels, durationMs / 1_000);
        if (error !== undefined) rpc.errors.inc({ ...labels, error: words(error) });
      },
    }),
    observe,
  };
  return { metrics, register };
}

/** The service's own metrics, in `register`. */
function defineMetrics({ Counter, Histogram }: typeof import("prom-client"), register: Registry) {
  const registers = [register];
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ) => new Histogram({ name, help, labelNames, buckets, registers });

  const payments = counter("x402_requests_total", "Verify and settle requests that have ended", [
    "operation",
    "outcome",
    "reason",
    "version",
    "network",
    "method",
  ]);
  const durations = {
    verify: histogram(
      "x402_verify_duration_seconds",
      "From the first byte of a verify to the last of its answer",
      ["outcome", "network"],
      verifyBuckets,
    ),
    settle: histogram(
      "x402_settle_duration_seconds",
      "From the first byte of a settle to the last of its answer",
      ["outcome", "network"],
      settleBuckets,
    ),
  };
  const answers = counter(
    "x402_http_responses_total",
    "HTTP requests that have ended, by route; 499 where the caller left before the answer",
    ["route", "status"],
  );
  const deliveries = counter(
    "x402_deliveries_total",
    "Successes on their way to the caller: delivered, or lost before the answer was written",
    ["fate"],
  );
  const gifts = counter(
    "x402_gifts_total",
    "Times that this process gave a payer the gas money for an approval",
    ["network"],
  );
  const giftsWei = counter("x402_gifts_wei_total", "The sum of these gifts, in wei", ["network"]);
  const giftsRefused = counter(
    "x402_gifts_refused_total",
    "Times that a payer lacked the gas money of an approval and got no gift from this process",
    ["network", "reason"],
  );
  const withdrawals = counter(
    "x402_channel_withdrawals_total",
    "Times that this process saw first that a payer withdraws from a channel that was opened here",
    ["network"],
  );
  const requests = counter("x402_rpc_requests_total", "HTTP requests to JSON-RPC endpoints", [
    "network",
    "endpoint",
    "provider",
    "purpose",
  ]);
  const errors = counter(
    "x402_rpc_errors_total",
    "HTTP requests to JSON-RPC endpoints without an answer that could be used",
    ["network", "endpoint", "provider", "error"],
  );
  const duration = histogram(
    "x402_rpc_duration_seconds",
    "Answers of JSON-RPC endpoints, and their absence",
    ["network", "endpoint", "provider"],
    rpcBuckets,
  );
  return {
    payments,
    durations,
    answers,
    deliveries,
    gifts,
    giftsWei,
    giftsRefused,
    withdrawals,
    requests,
    errors,
    duration,
  };
}

/**
 * Makes a function that lets the first `count` different values through and gives "other" for all that come later.
 * Every value of a label is a series that is kept for ever: if a set is larger than expected, the metrics get less exact
 * instead of filling the memory.
 */
function capLabels(count: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= count) return "other";
    known.add(value);
    return value;
  };
}
