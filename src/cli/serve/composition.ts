import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { createService, type Service } from "../../service.ts";
import type { ServeOptions } from "./options.ts";

/** Open connections. Each costs some KB and a file descriptor, and buyers do not connect to a facilitator themselves. */
const maxConnections = 10_000;

/** Verifies at a time take one request to a node each; 2,000 are more than a second of work. */
const maxVerifies = 2_000;

/** A process that is a second late with everything answers nobody in time. */
const maxLagMs = 1_000;

/** The service, put together as it is configured. */
export function composeService(
  { config, signers, database, logger }: ServeOptions,
  metrics: Metrics | undefined,
): Promise<Service> {
  const { networks, recovererKey, apiKeyPepper, settleWaitMs, anonymousVerify } = config;
  const { trustProxy, rateLimits, maxSettles } = config;
  return createService({
    networks,
    signers,
    recoverer: recovererKey === undefined ? undefined : createLocalSigner(recovererKey),
    database,
    apiKeyPepper,
    settleWaitMs,
    anonymousVerify,
    http: {
      trustProxy,
      rateLimits,
      pressure: { maxSettles, maxVerifies, maxLagMs },
      maxConnections,
      ...(metrics !== undefined && { metrics }),
    },
    logger,
  });
}
