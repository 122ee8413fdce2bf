import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { z } from "zod";
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
import { problemDetails } from "../../../protocol/problems.ts";
import type { Catalog } from "../../discovery/catalog.ts";
import { urlsOf } from "../connections/listen.ts";
import { callerOf } from "../plugins/authentication.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** `GET /discovery/resources` and `GET /discovery/search`: what the caller's organization was paid for. */
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

  /** The resources of the caller's organization, and what is asked about them. */
  async function read<Query>(request: FastifyRequest, schema: z.ZodType<Query>) {
    if (catalog === undefined) throw new ProblemError("notFound", problemDetails.discoveryOff);
    const asked = readDiscoveryQuery(schema, request.query);
    if ("detail" in asked) throw new ProblemError("malformed", asked.detail);
    return { resources: await catalog.read(callerOf(request).organization.id), query: asked.query };
  }
};

/** Notes in the catalogue what settled payments were for. */
export const noteResources = fp<{ catalog: Catalog }>(async (app, { catalog }) => {
  app.addHook("onSend", (request, _reply, payload, done) => {
    const { payment, result, body } = request;
    if (payment !== undefined && result?.outcome === "settled") {
      catalog.note(callerOf(request).organization.id, body, payment);
    }
    done(null, payload);
  });
});
