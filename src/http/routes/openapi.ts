import type { FastifyPluginAsync } from "fastify";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { type ApiBeside, describeService } from "../../protocol/openapi.ts";

/** `GET /openapi.json`; made when it is first asked for. */
export const openApiRoute: FastifyPluginAsync<{
  knownNetworks: NetworkRegistry;
  describeBeside?: (() => ApiBeside) | undefined;
}> = async (app, { knownNetworks, describeBeside }) => {
  let document: object | undefined;
  app.get("/openapi.json", () => {
    document ??= describeService(knownNetworks, describeBeside?.());
    return document;
  });
};
