import type { FastifyPluginAsync } from "fastify";
import type { NetworkHealth, Readiness } from "../../../protocol/answers.ts";
import { problemDetails } from "../../../protocol/problems.ts";
import { routes } from "../../../protocol/routes.ts";
import { memoizeFor } from "../../../util/cache.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { withTimeout } from "../../../util/waiting.ts";
import { urlsOf } from "../connections/listen.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** The state of every network. Never throws. */
export type CheckHealth = () => Promise<Readonly<Record<string, NetworkHealth>>>;

/** However many probes there are, each node gets at most one request a second. */
const maxAgeMs = 1_000;

/** Probes do not wait much longer, and closing the service should not either. */
const timeoutMs = 3_000;

/**
 * `GET /livez`, and `/health`, its name in the public protocol: the process answers. `GET /readyz`: some network can be asked (200), or none can (503); with
 * `?network=base`, which may be repeated, whether all of those can.
 *
 * One network that is down does not make the whole service unready: its node is down for every instance, and a balancer
 * that believed it would take them all out, for the networks that are well too.
 */
export const healthRoutes: FastifyPluginAsync<{ checkHealth: CheckHealth }> = async (
  app,
  { checkHealth },
) => {
  const check = memoizeFor(checkHealth, { maxAgeMs });
  const config = { unlimited: true, countedAs: "probes" } as const;

  async function checkWithTimeout(): ReturnType<CheckHealth> {
    try {
      return await withTimeout(check(), timeoutMs);
    } catch (error) {
      throw new UndeterminedError("The health of the networks could not be determined in time", {
        cause: error,
      });
    }
  }

  for (const url of [...urlsOf("livez"), ...urlsOf("health")])
    app.get(url, { config }, () => ({ status: "ok" }));
  app.get<{ Querystring: { network?: unknown } }>(
    routes.readyz.paths[0],
    { config },
    async (request, reply) => {
      const all = Object.entries(await checkWithTimeout());
      const asked = namesIn(request.query.network);
      const unknown = asked?.some((name) => !all.some(([known]) => known === name));
      if (unknown) {
        throw new ProblemError("notFound", problemDetails.noSuchNetwork(all.map(([name]) => name)));
      }
      const networks = all.filter(([name]) => asked === undefined || asked.includes(name));
      const status = statusOf(
        networks.map(([, { ready }]) => ready),
        asked !== undefined,
      );
      return reply
        .code(status === "not ready" ? 503 : 200)
        .send({ status, networks: Object.fromEntries(networks) });
    },
  );
};

function statusOf(ready: readonly boolean[], allAreNeeded: boolean): Readiness["status"] {
  if (!ready.includes(true)) return "not ready";
  if (!ready.includes(false)) return "ready";
  return allAreNeeded ? "not ready" : "degraded";
}

function namesIn(query: unknown): readonly unknown[] | undefined {
  if (query === undefined) return undefined;
  return Array.isArray(query) ? query : [query];
}
