import type { FastifyPluginAsync } from "fastify";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { describeService } from "../../protocol/openapi.ts";

/** `GET /openapi.json`; made when it is first asked for. */
export const openApiRoute: FastifyPluginAsync<{ knownNetworks: NetworkRegistry }> = async (
  app,
  { knownNetworks },
) => {
  let document: object | undefined;
  app.get("/openapi.json", () => {
    document ??= describeService(knownNetworks);
    return document;
  });
};
