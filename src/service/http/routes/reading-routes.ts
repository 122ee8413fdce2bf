import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { z } from "zod";
import { noTransaction, type Settlement } from "../../../ledger/settlement.ts";
import { nonceMember } from "../../../methods/method.ts";
import type { NetworkHealth, Readiness, SettlementList, SettlementView } from "../../../protocol/answers.ts";
import {
  type DiscoveryList,
  type DiscoverySearch,
  discoveryListQuery,
  discoverySearchQuery,
  listResources,
  readDiscoveryQuery,
  searchResources,
} from "../../../protocol/discovery/discovery-schemas.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { bytes32 } from "../../../protocol/primitives.ts";
import { problemDetails } from "../../../protocol/problems.ts";
import { routes } from "../../../protocol/routes.ts";
import { parseSettlementQuery, usualPage, writeCursor } from "../../../protocol/settlement-query.ts";
import { memoizeFor } from "../../../util/cache.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { withTimeout } from "../../../util/waiting.ts";
import type { Catalog } from "../../discovery/catalog.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { urlsOf } from "../connections/listen.ts";
import { callerOf } from "../plugins/request-context.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** `GET /settlements` and `GET /settlements/{id}`: the state of the organization's settlements. */
export const settlementRoutes: FastifyPluginAsync<{
  facilitator: Facilitator;
  knownNetworks: NetworkRegistry;
}> = async (app, { facilitator, knownNetworks }) => {
  const config = { apiKey: "required" } as const;
  const [listUrl = ""] = urlsOf("listSettlements");
  const [url = ""] = urlsOf("getSettlement");

  type Listing = { Querystring: Readonly<Record<string, unknown>> };
  app.get<Listing>(listUrl, { config }, async (request): Promise<SettlementList> => {
    const { query, problems } = parseSettlementQuery(request.query, knownNetworks);
    if (query === undefined) throw new ProblemError("malformed", problems.join("; "));
    const { limit = usualPage, cursor: after, ...filter } = query;
    const { settlements, next } = await facilitator.listSettlements(
      filter,
      { limit, after },
      callerOf(request),
    );
    return { settlements: settlements.map(view), next: next === null ? null : writeCursor(next) };
  });

  app.get<{ Params: { id: string } }>(url, { config }, async (request): Promise<SettlementView> => {
    const id = bytes32.safeParse(request.params.id.toLowerCase());
    const settlement = id.success ? await facilitator.findSettlement(id.data, callerOf(request)) : null;
    if (settlement === null) throw new ProblemError("notFound", problemDetails.noSettlement);
    return view(settlement);
  });
};

function view(settlement: Settlement): SettlementView {
  const { id, state, network, asset, payer, nonce, recipient, failure } = settlement;
  return {
    id,
    state,
    network,
    asset,
    payer,
    [nonceMember]: nonce,
    value: settlement.amount.toString(),
    maximum: (settlement.maximum ?? settlement.amount).toString(),
    recipient,
    transaction: settlement.transactionHash === noTransaction ? "" : settlement.transactionHash,
    blockNumber: settlement.blockNumber?.toString() ?? null,
    failure,
    claimedAt: isoTime(settlement.claimedAt),
    concludedAt: settlement.concludedAt === null ? null : isoTime(settlement.concludedAt),
    deliveredAt: settlement.deliveredAt === null ? null : isoTime(settlement.deliveredAt),
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** `GET /discovery/resources` and `GET /discovery/search`: the resources that the organization was paid for. */
export const discoveryRoutes: FastifyPluginAsync<{
  catalog: Catalog | undefined;
  knownNetworks: NetworkRegistry;
}> = async (app, { catalog, knownNetworks }) => {
  const config = { apiKey: "required" } as const;

  for (const url of urlsOf("listResources")) {
    app.get(url, { config }, async (request): Promise<DiscoveryList> => {
      const { resources, query } = await read(request, discoveryListQuery);
      return listResources(resources, query, knownNetworks);
    });
  }
  for (const url of urlsOf("searchResources")) {
    app.get(url, { config }, async (request): Promise<DiscoverySearch> => {
      const { resources, query } = await read(request, discoverySearchQuery);
      return searchResources(resources, query, knownNetworks);
    });
  }

  /** Returns the resources of the caller's organization, and the query about them. */
  async function read<Query>(request: FastifyRequest, schema: z.ZodType<Query>) {
    if (catalog === undefined) throw new ProblemError("notFound", problemDetails.discoveryOff);
    const asked = readDiscoveryQuery(schema, request.query);
    if ("detail" in asked) throw new ProblemError("malformed", asked.detail);
    return { resources: await catalog.read(callerOf(request).organization.id), query: asked.query };
  }
};

/** Records in the catalog what settled payments were for. */
export const noteResources = fp<{ catalog: Catalog }>(async (app, { catalog }) => {
  app.addHook("onSend", (request, _reply, payload, done) => {
    const { payment, result, body } = request;
    if (payment !== undefined && result?.outcome === "settled") {
      catalog.note(callerOf(request).organization.id, body, payment);
    }
    done(null, payload);
  });
});

/** Checks the state of every network. Never throws. */
export type CheckHealth = () => Promise<Readonly<Record<string, NetworkHealth>>>;

/** Each node gets at most one request a second, however many probes there are. */
const maxAgeMs = 1_000;

/** Probes do not wait much longer, and neither should closing the service. */
const timeoutMs = 3_000;

/**
 * `GET /livez`, and `/health`, its name in the public protocol: the process answers. `GET /readyz`: some network can be
 * asked (200), or none can (503). With `?network=base`, which may be repeated, all of the given networks must be ready.
 *
 * One network that is down does not make the whole service unready: its node is down for every instance, so a balancer
 * would take out all of them, even for networks that work.
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
