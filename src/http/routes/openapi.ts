import type { FastifyPluginAsync } from "fastify";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { type ApiBeside, describeService } from "../../protocol/openapi.ts";

/** `GET /openapi.json`; made when it is first asked for, and with an example, which would grow old, each time. */
export const openApiRoute: FastifyPluginAsync<{
  knownNetworks: NetworkRegistry;
  describeBeside?: (() => ApiBeside | Promise<ApiBeside>) | undefined;
}> = async (app, { knownNetworks, describeBeside }) => {
  let document: object | undefined;
  app.get("/openapi.json", async () => {
    if (document !== undefined) return document;
    const beside = await describeBeside?.();
    const described = describeService(knownNetworks, beside);
    if (beside?.example === undefined) document = described;
    return described;
  });
};
