import type { Logger } from "pino";
import { createMetricsApp } from "../../http/metrics-app.ts";
import { createMetrics } from "../../metrics/create-metrics.ts";
import type { Metrics } from "../../metrics/metrics.ts";

/** Metrics, and the server that Prometheus reads them from. */
export type MetricsServer = {
  metrics: Metrics;
  listen(address: { host: string; port: number }): Promise<string>;
  close(): Promise<void>;
};

export async function createMetricsServer(logger: Logger): Promise<MetricsServer> {
  const { metrics, register } = await createMetrics();
  const app = createMetricsApp(register, logger);
  return { metrics, listen: (address) => app.listen(address), close: () => app.close() };
}
