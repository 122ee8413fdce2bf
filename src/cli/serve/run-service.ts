import type { Logger } from "pino";
import { createAuthorizers, createLocalSigner, type Signer } from "../../chain/signing/local-signer.ts";
import { readOpenFileLimit } from "../../config/open-files.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { Database } from "../../ledger/database/database.ts";
import type { Metrics } from "../../observe/metrics/metrics.ts";
import { createMetrics } from "../../observe/metrics/metrics.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { createMetricsApp } from "../../service/http/app.ts";
import { connectionCapacity } from "../../service/http/connections/open-connections.ts";
import { createService, type Service } from "../../service/service.ts";
import { KitError } from "../../util/errors.ts";
import { closeWithTimeout } from "../../util/waiting.ts";

export type ServeOptions = {
  config: ServeConfig;
  signers: readonly [Signer, ...Signer[]];
  /** Open and up to date; the service closes it. */
  database: Database;
  logger: Logger;
  /** Identifies the service on the channels. */
  serviceId: string;
  /** The service's payments, recorded from the first call on. */
  openTimeline(): Timeline;
  /** Called with the URLs once payments are accepted. */
  onServing(urls: ServiceUrls): void;
};

type ServiceUrls = { url: string; metrics?: string; admin?: string };

/** The limit for concurrent verifies. Each makes one request to a node; 2,500 are more than a second of work. */
const maxVerifies = 2_500;

/**
 * The limit for other concurrent requests, such as listings and documents: each is answered within milliseconds unless
 * its client is slow to read.
 */
const maxOthers = 500;

/** However much one organization sends, an eighth of the slots stays free for others. */
const organizationShare = 7 / 8;

/** How often a running service checks its networks and operators. */
const inspectEveryMs = 15_000;

/** If the event loop is a second behind, responses come too late. */
const maxLagMs = 1_000;

/**
 * Runs the service until the signal aborts, then shuts it down gracefully.
 *
 * @throws ConfigurationError if a network is not as configured, KitError if it cannot listen
 */
export async function runService(interrupted: AbortSignal, options: ServeOptions): Promise<void> {
  const { config, logger, onServing } = options;
  const metricsServer = config.metrics && (await createMetricsServer(logger));
  const adminServer = await createAdminServer(options);
  const service = await composeService(options, metricsServer?.metrics);
  let isServing = false;
  const beside: Partial<ServiceUrls> = {};
  try {
    // Served from now on, so that operators can see why a start does not finish.
    if (metricsServer !== undefined && config.metrics !== undefined) {
      const url = await listen(metricsServer.app, config.metrics, "METRICS_");
      beside.metrics = `${url}/metrics`;
      logger.info({ url: beside.metrics }, "serving metrics");
    }
    if (adminServer !== undefined && config.admin !== undefined) {
      const url = await listen(adminServer, config.admin, "ADMIN_");
      beside.admin = url;
      logger.info({ url }, "showing payments to operators");
    }
    await service.start();
    if (interrupted.aborted) return;
    const url = await listen(service, config, "");
    await logNetworks(service, options);
    logger.info({ url: `${url}/v1` }, "serving");
    onServing({ url: `${url}/v1`, ...beside });
    await untilAborted(interrupted);
    isServing = true;
  } finally {
    const { drainDelayMs, timeoutMs } = config.shutdown;
    const delayMs = isServing ? drainDelayMs : 0;
    logger.info({ delayMs, timeoutMs }, "shutting down: settles under way are finished");
    await closeWithTimeout(
      {
        async close() {
          // The time reserved for answering unfinished settles, and for closing.
          const closingMs = Math.min(5_000, timeoutMs / 3);
          const finishMs = Math.max(0, timeoutMs - delayMs - closingMs);
          if (isServing) await service.drain({ delayMs, finishMs });
          await service.close();
          await metricsServer?.app.close();
          await adminServer?.close();
        },
      },
      { logger, timeoutMs },
    );
  }
  logger.info("ended");
}

/** Creates the metrics, and the server that Prometheus reads them from. */
async function createMetricsServer(logger: Logger) {
  const { metrics, register } = await createMetrics();
  return { metrics, app: createMetricsApp(register, logger) };
}

/** Creates the service as configured. */
function composeService(
  { config, signers, database, logger, serviceId }: ServeOptions,
  metrics: Metrics | undefined,
): Promise<Service> {
  const { recovererKey, sponsorKey, authorizerKeys, apiKeyPepper, settleWaitMs, anonymousVerify } = config;
  /** Keys for this network come first, because the first key is the one offered. */
  const authorizersOf = (name: NetworkName) =>
    createAuthorizers(
      [name, undefined].flatMap((of) =>
        authorizerKeys.filter(({ network }) => network === of).map(({ key }) => key),
      ),
    );
  const { trustProxy, rateLimits, maxSettles, docs, corsOrigins, discovery } = config;
  const connections = connectionCapacity(readOpenFileLimit());
  return createService({
    networks: config.networks.map((network) => ({ ...network, ...authorizersOf(network.name) })),
    signers,
    recoverer: recovererKey === undefined ? undefined : createLocalSigner(recovererKey),
    sponsor: sponsorKey === undefined ? undefined : createLocalSigner(sponsorKey),
    database,
    inspectEveryMs,
    inspectSigners: config.operators.kind === "remote",
    refusesUsedOperators: true,
    apiKeyPepper,
    settleWaitMs,
    anonymousVerify,
    discovery,
    http: {
      trustProxy,
      rateLimits,
      pressure: { maxSettles, maxVerifies, maxOthers, organizationShare, maxLagMs },
      connections,
      docs,
      corsOrigins,
      ...(metrics !== undefined && { metrics }),
    },
    serviceId,
    logger,
  });
}

/** Creates the server on which operators view payments, if it is configured. */
async function createAdminServer({ config, database, openTimeline, logger }: ServeOptions) {
  if (config.admin === undefined) return undefined;
  const { createAdmin } = await import("../../service/admin/create-admin.ts");
  const { claims, channels } = createLedger({ db: database, instanceId: crypto.randomUUID() });
  const listChannels = (limit: number) => channels.list({ limit });
  return createAdmin(config, config.admin, {
    timeline: openTimeline(),
    ledger: claims,
    listChannels,
    logger,
  });
}

/** Listens on a port. `prefix` begins the names of the variables that configure it. */
async function listen(
  server: Pick<Service, "listen">,
  { host, port }: { host: string; port: number },
  prefix: "" | "METRICS_" | "ADMIN_",
): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (cause) {
    throw new KitError(`The service cannot listen on port ${port} of ${host}`, {
      cause,
      hints: [
        ...(Reflect.get(Object(cause), "code") === "EADDRINUSE"
          ? [
              "Something listens there already: another `serve`, an `up`, or this one with the same port twice.",
            ]
          : []),
        `${prefix}PORT and ${prefix}HOST say where; ${prefix}HOST=0.0.0.0 is every address of this machine.`,
      ],
    });
  }
}

/** Logs one line per network: how it is served, or why it is not ready yet. */
async function logNetworks(
  { checkHealth }: Service,
  { config, signers, logger }: ServeOptions,
): Promise<void> {
  const networks = await checkHealth();
  for (const { name, chainId, facilitatorContract, rpcUrls, assets, confirmations } of config.networks) {
    const readiness = networks[name];
    const details = {
      network: name,
      chainId,
      facilitatorContract,
      operators: signers.map(({ address }) => address),
      assets: assets.map(({ address }) => address),
      rpcEndpoints: rpcUrls.length,
      confirmations,
    };
    if (readiness?.ready === true) logger.info(details, "network ready");
    else logger.warn({ ...details, detail: readiness?.detail }, "network not ready yet; trying again");
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
