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
import type { PoolAddress } from "./lease.ts";

/** The options of a pool. Ports cannot be set, because there may be several harnesses. */
export type PoolOptions<N extends NetworkName = BuiltInNetworkName> = Omit<
  HarnessSettings<N>,
  "port" | "rpcPorts" | "host" | "signal"
> & {
  /**
   * The maximum number of harnesses that run at a time; the number of processors by default. Further tests wait for a free
   * one, within their own time limit.
   */
  maxHarnesses?: number;
};

/** A pool that leases harnesses to other processes until it is closed. */
export type RunningPool = PoolAddress & { close(): Promise<void> };

const poolOptions: WantedOptions = {
  ...Object.fromEntries(Object.keys(ofOneHarness).map((name) => [name, anything])),
  maxHarnesses: { ...wholeNumber(1, 1_000), example: "2" },
};

/**
 * Reads and validates the options of a pool, which may come from JavaScript.
 *
 * @returns a function that starts the pool
 * @throws {ConfigurationError} listing everything that is wrong with the options
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
    const pool = createHarnessPool(() => startHarness({ ...start, logger }), maxHarnesses);
    try {
      // Start one now, so that a failure is reported once instead of by every test.
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

/** The answer to a lease request, sent as one line of JSON. */
type LeaseGrant = { url: string } | { error: string; hints: readonly string[] };

/**
 * Leases harnesses to other processes. Each request is a lease: its response starts when a harness is free, and never ends.
 * The lease lasts as long as the connection, which the OS closes when the process exits, for any reason.
 *
 * Only processes that know the secret URL can use it; otherwise other programs or web pages could take all harnesses.
 */
async function startLeaseServer(pool: HarnessPool<RunningHarness>) {
  const path = `/${randomBytes(32).toString("hex")}`;
  const server = http.createServer(async (request, response) => {
    if (request.url !== path || foreign(request.headers, { host: "127.0.0.1" }) !== undefined) {
      // A plain 404, which does not reveal what this server is.
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
  // No timeouts: waiting for a lease and holding it may take as long as a test does.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 0;
  return {
    /** Contains the secret path. */
    url: `http://127.0.0.1:${await listenOnLoopback(server)}${path}`,
    close: () => closeAtOnce(server),
  };
}

function grant(response: ServerResponse, answer: LeaseGrant): void {
  response.write(`${JSON.stringify(answer)}\n`);
}

/** The methods of a harness that the pool uses. */
export type Poolable = Pick<RunningHarness, "reset" | "close" | "onFailure">;

/** A freshly reset harness for exclusive use by one test. */
type PoolLease<H extends Poolable> = {
  readonly harness: H;
  /** Returns the harness to the pool. Can be called again. */
  release(): void;
};

/**
 * Harnesses that are leased to one test at a time.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | starting | counts against the maximum, cannot be leased | `start` |
 * | free | freshly started or reset | its reset |
 * | leased | used by one test until released or until its process exits | the holder of the lease |
 * | resetting | released, cannot be leased | its reset; if that fails, the harness is closed |
 */
type HarnessPool<H extends Poolable> = {
  /** Waits for a free harness. Starts another one if the maximum is not reached. */
  lease(signal: AbortSignal): Promise<PoolLease<H>>;
  /** Closes all harnesses and rejects waiting leases. */
  close(): Promise<void>;
};

type Waiting<H extends Poolable> = { resolve(lease: PoolLease<H>): void; reject(error: unknown): void };

/** Creates a pool of at most `most` harnesses, each started by `start`. */
export function createHarnessPool<H extends Poolable>(start: () => Promise<H>, most: number): HarnessPool<H> {
  const all = new Set<H>();
  const free: H[] = [];
  const waiting: Waiting<H>[] = [];
  const starting = new Set<Promise<void>>();
  let closed = false;

  /** Leases free harnesses to those waiting, and starts more if needed and allowed. */
  function serve(): void {
    while (free.length > 0 && waiting.length > 0) {
      const harness = free.shift();
      if (harness !== undefined) waiting.shift()?.resolve(leaseOf(harness));
    }
    while (!closed && starting.size < waiting.length && all.size + starting.size < most) {
      const started = startOne().finally(() => {
        starting.delete(started);
        serve();
      });
      starting.add(started);
    }
  }

  async function startOne(): Promise<void> {
    try {
      const harness = await start();
      all.add(harness);
      free.push(harness);
      harness.onFailure(() => void discard(harness));
    } catch (error) {
      // If one cannot start, most likely none can.
      for (const { reject } of waiting.splice(0)) reject(error);
    }
  }

  function leaseOf(harness: H): PoolLease<H> {
    let held = true;
    return {
      harness,
      release() {
        if (!held) return;
        held = false;
        void giveBack(harness);
      },
    };
  }

  /** Resets the harness right away, so that the next test does not have to wait for it. */
  async function giveBack(harness: H): Promise<void> {
    if (closed || !all.has(harness)) return;
    try {
      await harness.reset();
      if (all.has(harness)) free.push(harness);
    } catch {
      await discard(harness);
    }
    serve();
  }

  /** Removes a harness whose node died or that cannot be reset. */
  async function discard(harness: H): Promise<void> {
    if (!all.delete(harness)) return;
    const index = free.indexOf(harness);
    if (index !== -1) free.splice(index, 1);
    await harness.close().catch(() => {});
    serve();
  }

  return {
    lease(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<PoolLease<H>>();
      if (closed) {
        reject(new KitError("The pool of harnesses was closed", { code: "closed" }));
        return promise;
      }
      const entry: Waiting<H> = { resolve, reject };
      waiting.push(entry);
      const leave = () => {
        const index = waiting.indexOf(entry);
        if (index === -1) return;
        waiting.splice(index, 1);
        reject(new KitError("The lease was cancelled"));
      };
      signal.addEventListener("abort", leave);
      if (signal.aborted) leave();
      serve();
      return promise.finally(() => signal.removeEventListener("abort", leave));
    },

    async close() {
      closed = true;
      for (const { reject } of waiting.splice(0))
        reject(new KitError("The pool of harnesses was closed", { code: "closed" }));
      await Promise.all(starting);
      await Promise.all([...all].map((harness) => harness.close()));
      all.clear();
    },
  };
}
