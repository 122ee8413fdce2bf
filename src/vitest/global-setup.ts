import { availableParallelism } from "node:os";
import type { TestProject } from "vitest/node";
import { ConfigurationError } from "../errors.ts";
import { type HarnessOptions, readHarnessOptions } from "../harness/api/harness-options.ts";
import { requireNode } from "../harness/nodes/require-node.ts";
import { startHarness } from "../harness/run/start-harness.ts";
import { createLogger } from "../logging/logger.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { createHarnessPool } from "./harness-pool.ts";
import { startLeaseServer } from "./lease-server.ts";
import { providedKey } from "./provided.ts";

/** How the harnesses of a test run are started. Ports are not among them: there may be several harnesses. */
export type GlobalSetupOptions<N extends NetworkName = NetworkName> = Omit<
  HarnessOptions<N>,
  "port" | "rpcPorts" | "host" | "signal"
> & {
  /**
   * The most harnesses that run at a time; as many as the machine has processors by default. Tests beyond that wait
   * for one, within their own time limit.
   */
  maxHarnesses?: number;
};

/**
 * A global setup for vitest: harnesses that all test files share, one test at a time. The first is started with the
 * run, further ones when tests run at the same time; all end with the run.
 *
 * @throws {ConfigurationError} with everything that is wrong with the options
 *
 * @example
 * // test/global-setup.ts, named in vitest.config.ts: test: { globalSetup: ["test/global-setup.ts"] }
 * import { createGlobalSetup } from "x402-facilitator-kit/vitest/global-setup";
 * export default createGlobalSetup({ networks: ["base", "polygon"] });
 */
export function createGlobalSetup<const N extends NetworkName = NetworkName>(
  options: GlobalSetupOptions<N> = {},
): (project: TestProject) => Promise<() => Promise<void>> {
  requireNode();
  const { maxHarnesses = availableParallelism(), ...harnessOptions } = options;
  if (!Number.isSafeInteger(maxHarnesses) || maxHarnesses < 1) {
    throw new ConfigurationError([
      { name: "maxHarnesses", problem: `${maxHarnesses} is not a number of harnesses`, example: "2" },
    ]);
  }
  const ports = ["port", "rpcPorts"].filter((name) => name in harnessOptions);
  if (ports.length > 0) {
    throw new ConfigurationError(
      ports.map((name) => ({ name, problem: "cannot be that of several harnesses: leave it out" })),
    );
  }
  const { names, start, logLevel } = readHarnessOptions(harnessOptions);

  return async (project) => {
    const logger = createLogger(logLevel);
    const pool = createHarnessPool({ start: () => startHarness({ ...start, logger }), most: maxHarnesses });
    try {
      // What keeps a harness from starting is said once, and not by every test.
      const { release } = await pool.lease(new AbortController().signal);
      release();
      const server = await startLeaseServer(pool);
      project.provide(providedKey, { url: server.url, networks: names });
      return async () => {
        await server.close();
        await pool.close();
      };
    } catch (error) {
      await pool.close();
      throw error;
    }
  };
}

/** All five networks. */
export default createGlobalSetup();
