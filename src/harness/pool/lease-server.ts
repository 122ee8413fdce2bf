import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { foreign } from "../../service/http/local-server/refuse-foreign.ts";
import { KitError } from "../../util/errors.ts";
import { closeAtOnce, listenOnLoopback } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";
import type { RunningHarness } from "../run/running-harness.ts";
import type { HarnessPool } from "./harness-pool.ts";

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
