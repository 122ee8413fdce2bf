import { z } from "zod";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Harness, NamesNetworks } from "../api/harness-api.ts";
import { leaseFrom } from "./lease.ts";
import { type PoolOptions, preparePool, type RunningPool } from "./start-pool.ts";

export type { PoolOptions, RunningPool } from "./start-pool.ts";

/** The environment variable by which processes started later find the pool. */
const variable = "X402_HARNESS_POOL";

const addressSchema = z.object({ url: z.string(), networks: z.array(z.string()) });

/**
 * Starts a pool of harnesses that all test files of a run share, for the global setup of a test runner. Each serves one test
 * at a time. Processes started afterwards find the pool automatically; see {@link leaseHarness}. The first harness starts
 * with the pool, more start when tests run concurrently, and all end with this process, however it ends.
 *
 * @throws {ConfigurationError} listing everything that is wrong with the options
 * @throws {KitError} if a harness cannot be started; nothing is left running then
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
 * Leases a fresh harness from the pool of this run for exclusive use; closing it returns it to the pool. Waits while all
 * harnesses are leased.
 *
 * @param networks the networks needed; all of the pool's by default
 * @throws {KitError} if there is no pool, or it does not run one of the networks
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
