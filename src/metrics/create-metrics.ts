import type { Registry } from "prom-client";
import { capLabels } from "./cap-labels.ts";
import type { Metrics } from "./metrics.ts";
import { observeSources } from "./sources.ts";

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
  const { collectDefaultMetrics, Counter, Histogram, Registry } = client;
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register });

  const payments = new Counter({
    name: "x402_requests_total",
    help: "Verify and settle requests that have ended",
    labelNames: ["operation", "outcome", "reason", "version", "network"],
    registers,
  });
  const durations = {
    verify: new Histogram({
      name: "x402_verify_duration_seconds",
      help: "From the first byte of a verify to the last of its answer",
      labelNames: ["outcome", "network"],
      buckets: verifyBuckets,
      registers,
    }),
    settle: new Histogram({
      name: "x402_settle_duration_seconds",
      help: "From the first byte of a settle to the last of its answer",
      labelNames: ["outcome", "network"],
      buckets: settleBuckets,
      registers,
    }),
  };
  const answers = new Counter({
    name: "x402_http_responses_total",
    help: "HTTP requests that have ended, by route; 499 where the caller left before the answer",
    labelNames: ["route", "status"],
    registers,
  });
  const deliveries = new Counter({
    name: "x402_deliveries_total",
    help: "Successes on their way to the caller: delivered, or lost before the answer was written",
    labelNames: ["fate"],
    registers,
  });
  const rpcRequests = new Counter({
    name: "x402_rpc_requests_total",
    help: "HTTP requests to JSON-RPC endpoints",
    labelNames: ["network", "endpoint", "provider", "purpose"],
    registers,
  });
  const rpcErrors = new Counter({
    name: "x402_rpc_errors_total",
    help: "HTTP requests to JSON-RPC endpoints without an answer that could be used",
    labelNames: ["network", "endpoint", "provider", "error"],
    registers,
  });
  const rpcDuration = new Histogram({
    name: "x402_rpc_duration_seconds",
    help: "Answers of JSON-RPC endpoints, and their absence",
    labelNames: ["network", "endpoint", "provider"],
    buckets: rpcBuckets,
    registers,
  });
  const observe = observeSources({ client, register, now });

  const reasons = capLabels(64);
  const endpoints = capLabels(16);
  const words = capLabels(32);

  const metrics: Metrics = {
    payment({ operation, outcome, reason, x402Version, network = "none", seconds }) {
      payments.inc({
        operation,
        outcome,
        reason: reason === undefined ? "none" : reasons(reason),
        version: x402Version ?? "none",
        network,
      });
      durations[operation].observe({ outcome, network }, seconds);
    },
    http(route = "none", status) {
      answers.inc({ route, status });
    },
    delivery(fate) {
      deliveries.inc({ fate });
    },
    rpc: (network, providers) => ({
      exchanged({ endpoint, purpose, durationMs, error }) {
        const provider = providers[Number(endpoint) - 1] ?? "none";
        const labels = { network, endpoint: endpoints(endpoint), provider };
        rpcRequests.inc({ ...labels, purpose: words(purpose) });
        rpcDuration.observe(labels, durationMs / 1_000);
        if (error !== undefined) rpcErrors.inc({ ...labels, error: words(error) });
      },
    }),
    observe,
  };
  return { metrics, register };
}
