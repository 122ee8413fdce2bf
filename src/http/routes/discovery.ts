import type { FastifyPluginAsync } from "fastify";
import type { z } from "zod";
import type { Catalog } from "../../discovery/catalog.ts";
import {
  type DiscoveryList,
  type DiscoverySearch,
  discoveryListQuery,
  discoverySearchQuery,
  listResources,
  searchResources,
} from "../../protocol/discovery.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { callerOf } from "../plugins/authentication.ts";
import { ProblemError } from "../problems/problem-error.ts";
import { urlsOf } from "./urls.ts";

/** `GET /discovery/resources` and `GET /discovery/search`: what the caller's organization was paid for. */
export const discoveryRoutes: FastifyPluginAsync<{
  catalog: Catalog | undefined;
  knownNetworks: NetworkRegistry;
}> = async (app, { catalog, knownNetworks }) => {
  const config = { apiKey: "required" } as const;

  for (const url of urlsOf("listResources")) {
    app.get(url, { config }, async (request): Promise<DiscoveryList> => {
      const query = readQuery(request.query, discoveryListQuery);
      return listResources(await required().read(callerOf(request).organization.id), query, knownNetworks);
    });
  }
  for (const url of urlsOf("searchResources")) {
    app.get(url, { config }, async (request): Promise<DiscoverySearch> => {
      const query = readQuery(request.query, discoverySearchQuery);
      return searchResources(await required().read(callerOf(request).organization.id), query, knownNetworks);
    });
  }

  function required(): Catalog {
    if (catalog === undefined) throw new ProblemError("notFound", problemDetails.discoveryOff);
    return catalog;
  }

  function readQuery<Query>(query: unknown, schema: z.ZodType<Query>): Query {
    required();
    const { data, error } = schema.safeParse(query);
    if (error === undefined) return data;
    const problems = error.issues.map(({ path, message }) => [...path, message].join(" "));
    throw new ProblemError("malformed", problems.join("; "));
  }
};
