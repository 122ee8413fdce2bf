import { connect, createServer } from "node:net";
import { setTimeout } from "node:timers/promises";
import { createLocalSigner } from "../../../src/chain/signing/local-signer.ts";
import { withTestKeys } from "../../../src/harness/run/harness-core.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { type AppOptions, createApp } from "../../../src/service/http/app.ts";
import { createCore } from "../../../src/service/service.ts";
import { listenOnLoopback } from "../../../src/util/node-http.ts";
import { localNetwork } from "../local-network.ts";
import { openMigrated } from "../open-migrated.ts";
import { runningChain } from "../running-chain.ts";

export type StrainedService = { origin: string; close(): Promise<void> };

/** An overloaded service on the same chain. It answers before it checks a payment, and settles none. */
export async function startStrainedService(
  harness: RunningHarness,
  limits: Pick<AppOptions, "rateLimits" | "pressure">,
): Promise<StrainedService> {
  const base = runningChain(harness, "base");
  const logger = createLogger("silent");
  const core = createCore({
    networks: [localNetwork({ ...base, blockTimeMs: 1_000 })],
    signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
    database: await openMigrated("sqlite::memory:"),
    apiKeyPepper: "test",
    logger,
  });
  const app = await createApp({
    facilitator: core.facilitator,
    organizations: withTestKeys(core.organizations, ["base"]),
    checkHealth: core.checkHealth,
    now: () => Date.now(),
    logger,
    ...limits,
  });
  return {
    origin: await app.listen({ host: "127.0.0.1", port: 0 }),
    async close() {
      await core.stop();
      await app.close();
      await core.close();
    },
  };
}

/** A service that begins to shut down when a request has arrived in part. Later connections are refused. */
export async function startEndingService(harness: RunningHarness): Promise<StrainedService> {
  const service = await startStrainedService(harness, {});
  let closing: Promise<void> | undefined;
  const proxy = createServer((client) => {
    const onward = connect(Number(new URL(service.origin).port), "127.0.0.1");
    onward.pipe(client);
    client.once("data", async (bytes) => {
      onward.write(bytes.subarray(0, 20));
      await setTimeout(50);
      closing ??= service.close();
      await setTimeout(50);
      onward.write(bytes.subarray(20));
      client.pipe(onward);
    });
    client.on("error", () => onward.destroy());
    onward.on("error", () => client.destroy());
  });
  return {
    origin: `http://127.0.0.1:${await listenOnLoopback(proxy)}`,
    async close() {
      proxy.close();
      await (closing ?? service.close());
    },
  };
}
