import type { TestProject } from "vitest/node";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import type { NamesNetworks } from "../api/harness-api.ts";
import { providedKey } from "../pool/lease.ts";
import { type PoolOptions, preparePool } from "../pool/start-pool.ts";

export type { PoolOptions as GlobalSetupOptions } from "../pool/start-pool.ts";

/**
 * A global setup for vitest: a pool of harnesses that all test files share. Each serves one test at a time. The first
 * starts with the run, more start when tests run concurrently, and all end with the run.
 *
 * @throws {ConfigurationError} listing everything that is wrong with the options
 *
 * @example
 * // test/global-setup.ts, named in vitest.config.ts: test: { globalSetup: ["test/global-setup.ts"] }
 * import { createGlobalSetup } from "x402-facilitator-kit/vitest/global-setup";
 * export default createGlobalSetup({ networks: ["base", "polygon"] });
 */
export function createGlobalSetup<const N extends NetworkName = BuiltInNetworkName>(
  options?: PoolOptions<N> & NamesNetworks<N>,
): (project: TestProject) => Promise<() => Promise<void>>;
export function createGlobalSetup(
  options: PoolOptions<NetworkName> = {},
): (project: TestProject) => Promise<() => Promise<void>> {
  const start = preparePool(options);
  return async (project) => {
    const { url, networks, close } = await start();
    project.provide(providedKey, { url, networks });
    return close;
  };
}

/** Starts all five built-in networks. */
export default createGlobalSetup();
