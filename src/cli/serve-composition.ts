import { createLocalSigner } from "../chain/local-signer.ts";
import { createService, type Service } from "../service.ts";
import type { ServeOptions } from "./serve-until.ts";

/** The service, put together as it is configured. */
export function composeService({ config, signers, logger }: ServeOptions): Promise<Service> {
  const { networks, recovererKey, databaseUrl, apiKeyPepper, settleWaitMs, anonymousVerify, trustProxy } =
    config;
  return createService({
    networks,
    signers,
    recoverer: recovererKey === undefined ? undefined : createLocalSigner(recovererKey),
    databaseUrl,
    apiKeyPepper,
    settleWaitMs,
    anonymousVerify,
    http: { trustProxy },
    logger,
  });
}
