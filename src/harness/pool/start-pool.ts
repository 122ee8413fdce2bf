import { availableParallelism } from "node:os";
import { createLogger } from "../../observe/log/logger.ts";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { anything, requireGiven, type WantedOptions, wholeNumber } from "../../util/given.ts";
import type { HarnessOptions } from "../api/harness-options.ts";
import { harnessOptions as ofOneHarness, readHarnessOptions } from "../api/read-harness-options.ts";
import { requireNode } from "../nodes/require-node.ts";
import { startHarness } from "../run/start-harness.ts";
import { createHarnessPool } from "./harness-pool.ts";
import type { PoolAddress } from "./lease.ts";
import { startLeaseServer } from "./lease-server.ts";

/** How the harnesses of a test run are started. Ports are not among them: there may be several harnesses. */
export type PoolOptions<N extends NetworkName = BuiltInNetworkName> = Omit<
  HarnessOptions<N>,
  "port" | "rpcPorts" | "host" | "signal"
> & {
  /**
   * The most harnesses that run at a time; as many as the machine has processors by default. Tests beyond that wait
   * for one, within their own time limit.
   */
  maxHarnesses?: number;
};

/** A pool that leases to other processes, until it is closed. */
export type RunningPool = PoolAddress & { close(): Promise<void> };

const poolOptions: WantedOptions = {
  ...Object.fromEntries(Object.keys(ofOneHarness).map((name) => [name, anything])),
  maxHarnesses: { ...wholeNumber(1, 1_000), example: "2" },
};

/**
 * Reads the options of a pool, which may come from JavaScript; the pool is then started by what this gives.
 *
 * @throws {ConfigurationError} with everything that is wrong with the options
 */
export function preparePool<const N extends NetworkName = BuiltInNetworkName>(
  options: PoolOptions<N>,
): () => Promise<RunningPool> {
  requireNode();
  requireGiven(options, poolOptions);
  const { maxHarnesses = availableParallelism(), ...harnessOptions } = options;
  const ports = ["port", "rpcPorts"].filter((name) => name in harnessOptions);
  if (ports.length > 0) {
    throw new ConfigurationError(
      ports.map((name) => ({ name, problem: "cannot be that of several harnesses: leave it out" })),
    );
  }
  const { names, start, logLevel } = readHarnessOptions(harnessOptions);

  return async () => {
    const logger = createLogger(logLevel);
    const pool = createHarnessPool({ start: () => startHarness({ ...start, logger }), most: maxHarnesses });
    try {
      // What keeps a harness from starting is said once, and not by every test.
      const { release } = await pool.lease(new AbortController().signal);
      release();
      const server = await startLeaseServer(pool);
      return {
        url: server.url,
        networks: names,
        async close() {
          await server.close();
          await pool.close();
        },
      };
    } catch (error) {
      await pool.close();
      throw error;
    }
  };
}
