import { z } from "zod";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Harness, NamesNetworks } from "../api/harness-api.ts";
import { leaseFrom } from "./lease.ts";
import { type PoolOptions, preparePool, type RunningPool } from "./start-pool.ts";

export type { PoolOptions, RunningPool } from "./start-pool.ts";

/** How a pool is found by the processes that are started after it. */
const variable = "X402_HARNESS_POOL";

const addressSchema = z.object({ url: z.string(), networks: z.array(z.string()) });

/**
 * Starts harnesses that all test files of a run share, one test at a time; for a runner's global setup. Processes that
 * are started afterwards find them by themselves: {@link leaseHarness}. The first harness is started with the pool,
 * further ones when tests run at the same time. However this process ends, they end with it.
 *
 * @throws {ConfigurationError} with everything that is wrong with the options
 * @throws {KitError} when a harness cannot be started; nothing is left running then
 *
 * @example
 * const pool = await startHarnessPool({ networks: ["base"] });
 * // and when the run is over
 * await pool.close();
 */
export function startHarnessPool<const N extends NetworkName = BuiltInNetworkName>(
  options?: PoolOptions<N> & NamesNetworks<N>,
): Promise<RunningPool>;
export async function startHarnessPool(options: PoolOptions<NetworkName> = {}): Promise<RunningPool> {
  const pool = await preparePool(options)();
  process.env[variable] = JSON.stringify({ url: pool.url, networks: pool.networks });
  return pool;
}

/**
 * Leases a harness from the pool of this run. It is for its holder alone, and as new; closing gives it back. It waits
 * while all are leased.
 *
 * @param networks those that are needed; all of the pool's by default
 * @throws {KitError} when there is no pool, or it runs without one of the networks
 */
export async function leaseHarness<const N extends NetworkName = BuiltInNetworkName>(
  networks?: readonly N[],
): Promise<Harness<N>> {
  const text = process.env[variable];
  if (text === undefined) {
    throw new KitError("There is no harness to lease: no pool was started before this process", {
      hints: ["Call startHarnessPool() in the global setup of the test runner; see docs/guides/harness.md."],
    });
  }
  return leaseFrom(addressSchema.parse(JSON.parse(text)), networks);
}
