import { createService, type Service } from "../service.ts";
import type { ServeOptions } from "./serve-until.ts";

/** The service, put together as it is configured. */
export function composeService({ config, signers, logger }: ServeOptions): Promise<Service> {
  const { networks, databaseUrl, apiKeyPepper, settleWaitMs, anonymousVerify, trustProxy } = config;
  return createService({
    networks,
    signers,
    databaseUrl,
    apiKeyPepper,
    settleWaitMs,
    anonymousVerify,
    http: { trustProxy },
    logger,
  });
}
