import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { availableParallelism } from "node:os";
import { createLogger } from "../../observe/log/logger.ts";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { foreign } from "../../service/http/local-server.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { anything, requireGiven, type WantedOptions, wholeNumber } from "../../util/given.ts";
import { closeAtOnce, http, listenOnLoopback } from "../../util/node-http.ts";
import { requireNode } from "../../util/self-command.ts";
import type { HarnessSettings } from "../api/harness-api.ts";
import { harnessOptions as ofOneHarness, readHarnessOptions } from "../api/read-harness-options.ts";
import type { RunningHarness } from "../run/running-harness.ts";
import { startHarness } from "../run/start-harness.ts";
import { createHarnessPool, type HarnessPool } from "./harness-pool.ts";
import type { PoolAddress } from "./lease.ts";

/** How the harnesses of a test run are started. Ports are not among them: there may be several harnesses. */
export type PoolOptions<N extends NetworkName = BuiltInNetworkName> = Omit<
  HarnessSettings<N>,
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

/** The answer to a lease: a line of JSON. */
export type LeaseGrant = { url: string } | { error: string; hints: readonly string[] };

export type LeaseServer = {
  /** With the secret that a request must name. */
  readonly url: string;
  close(): Promise<void>;
};

/**
 * Leases harnesses to other processes. A request is a lease: its answer begins when there is a harness, and never
 * ends. The lease lasts as long as the connection, which the system closes with the process, however that ends.
 *
 * It is for the processes that were told its URL: other programs and web pages could hold all harnesses of a run.
 */
export async function startLeaseServer(pool: HarnessPool<RunningHarness>): Promise<LeaseServer> {
  const path = `/${randomBytes(32).toString("hex")}`;
  const server = http.createServer(async (request, response) => {
    if (request.url !== path || foreign(request.headers, { host: "127.0.0.1" }) !== undefined) {
      // The same as of any other server, and nothing of what this one is.
      response.writeHead(404).end();
      return;
    }
    const left = new AbortController();
    response.on("close", () => left.abort());
    try {
      const { harness, release } = await pool.lease(left.signal);
      if (left.signal.aborted) return release();
      left.signal.addEventListener("abort", release);
      grant(response, { url: harness.description.facilitator.url });
    } catch (error) {
      if (left.signal.aborted) return;
      const hints = error instanceof KitError ? error.hints : [];
      grant(response, { error: error instanceof Error ? error.message : String(error), hints });
      response.end();
    }
  });
  // A lease may be waited for, and held, as long as a test takes.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 0;
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}${path}`,
    close: () => closeAtOnce(server),
  };
}

function grant(response: ServerResponse, answer: LeaseGrant): void {
  response.write(`${JSON.stringify(answer)}\n`);
}
