import type { Registry } from "prom-client";
import type { NetworkName } from "../../protocol/networks.ts";
import type { DeliveryFate, PaymentOutcome } from "../channels/channels.ts";
import { type MetricSources, observeSources } from "./sources.ts";

export type EndedPayment = {
  operation: "verify" | "settle";
  outcome: PaymentOutcome;
  /** An invalid reason or a problem name; undefined if the outcome is good. */
  reason: string | undefined;
  /** Undefined if the body was not read. */
  x402Version: 1 | 2 | undefined;
  /** Undefined if the request names no known network. */
  network: NetworkName | undefined;
  /** The payment method, `SignedPayment.method`; undefined if the body is not a well-formed payment. */
  method: string | undefined;
  seconds: number;
};

/** A finished HTTP request to a JSON-RPC endpoint. */
export type RpcExchange = {
  /** The endpoint's position in the configuration. Never its URL, which may hold a key. */
  endpoint: string;
  purpose: string;
  durationMs: number;
  /** The kind of error, in one word; undefined if the response was used. */
  error: string | undefined;
};

/**
 * Why the sponsor gave a payer no gas money: over the limit for one gift, for one day, or for one organization; or
 * the sponsor lacks the coins.
 */
export type GiftRefusal = "payment" | "day" | "organization" | "coins";

/** Counters for the parts of the service. No method throws or waits. */
export type Metrics = {
  payment(record: EndedPayment): void;
  /** `route` is the registered pattern, never the requested path; undefined if no route matched. */
  http(route: string | undefined, status: number): void;
  delivery(fate: DeliveryFate): void;
  /** Gas money that the sponsor gave to a payer, in wei. */
  gift(network: NetworkName, wei: bigint): void;
  /** A payer announced a withdrawal from a channel. */
  withdrawal(network: NetworkName): void;
  /** The sponsor refused to give gas money. */
  giftRefused(network: NetworkName, reason: GiftRefusal): void;
  /** Returns a counter for the RPC client of one network. `providers` are the endpoints' hosts, in configuration order. */
  rpc(network: NetworkName, providers: readonly string[]): { exchanged(exchange: RpcExchange): void };
  /** Adds sources; those added before stay. */
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

/** In seconds. Verify takes a request to a node; settle waits for a block, for as long as configured. */
const verifyBuckets = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const settleBuckets = [0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 21, 34, 55, 90];
const rpcBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Creates the Prometheus metrics. `metrics` goes to the parts of the service, `register` to the app that serves them; see
 * `createMetricsApp`.
 *
 * prom-client is imported here and not at the top: loading takes 0.3 s, which only a service with metrics should spend.
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

/** Defines the service's own metrics in `register`. */
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
 * Returns a function that passes the first `count` distinct values through and maps all later ones to "other". Every
 * label value is a series that is kept forever: if there are more values than expected, the metrics should lose
 * precision instead of filling the memory.
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
