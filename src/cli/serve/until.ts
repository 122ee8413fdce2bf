import { KitError } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { closeInTime } from "./close.ts";
import { composeService } from "./composition.ts";
import { createMetricsServer } from "./metrics.ts";
import type { ServeOptions } from "./options.ts";
import { refuseUnsafe } from "./preflight.ts";
import { announceNetworks } from "./ready.ts";

/**
 * Runs the service until the signal aborts, and ends it with grace.
 *
 * @throws ConfigurationError when a network is not what was configured, KitError when it cannot listen
 */
export async function serveUntil(interrupted: AbortSignal, options: ServeOptions): Promise<void> {
  const { config, logger } = options;
  const { service, metricsServer } = await prepare(options);
  try {
    // From now on, so that it can be seen why a start does not come to its end.
    if (metricsServer !== undefined && config.metrics !== undefined) {
      const url = await listen(metricsServer, config.metrics, "METRICS_");
      logger.info({ url: `${url}/metrics` }, "serving metrics");
    }
    await service.start();
    if (interrupted.aborted) return;
    const url = await listen(service, config, "");
    await announceNetworks(service, options);
    logger.info({ url: `${url}/v1` }, "serving");
    await untilAborted(interrupted);
    logger.info("ending: no new payments are taken, and what is in flight stays in the database");
  } finally {
    await closeInTime(service, { logger });
    await metricsServer?.close();
  }
  logger.info("ended");
}

async function prepare(options: ServeOptions) {
  const { config, database, logger } = options;
  try {
    await refuseUnsafe(options);
    const metricsServer = config.metrics && (await createMetricsServer(logger));
    return { metricsServer, service: await composeService(options, metricsServer?.metrics) };
  } catch (error) {
    await database.destroy();
    throw error;
  }
}

/** `prefix` is how the names of the variables begin that say where. */
async function listen(
  server: Pick<Service, "listen">,
  { host, port }: { host: string; port: number },
  prefix: "" | "METRICS_",
): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (cause) {
    throw new KitError(`The service cannot listen on port ${port} of ${host}`, {
      cause,
      hints: [
        `${prefix}PORT and ${prefix}HOST say where; ${prefix}HOST=0.0.0.0 is every address of this machine.`,
      ],
    });
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
