import type { FastifyPluginAsync } from "fastify";
import { payloadSchema } from "../../../methods/payment-request-schema.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { type ApiBeside, describeService } from "../../../protocol/openapi.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { urlsOf } from "./urls.ts";

/**
 * `GET /openapi.json`; made when it is first asked for. With an example, which serves once, it is made again for those who
 * ask after it was there: that takes a question to a node and a signature, which all who wait meanwhile share.
 */
export const openApiRoute: FastifyPluginAsync<{
  knownNetworks: NetworkRegistry;
  describeBeside?: (() => ApiBeside | Promise<ApiBeside>) | undefined;
}> = async (app, { knownNetworks, describeBeside }) => {
  let document: Promise<string> | undefined;
  let isLasting = false;

  async function describe(): Promise<string> {
    const beside = await describeBeside?.();
    isLasting = beside?.example === undefined;
    return JSON.stringify(describeService(payloadSchema, knownNetworks, beside));
  }

  app.get("/openapi.json", { config: { countedAs: "documents" } }, async (_request, reply) => {
    document ??= describe().finally(() => {
      if (!isLasting) document = undefined;
    });
    reply.type("application/json; charset=utf-8");
    return document;
  });
};

/** `GET /supported`: the kinds of payment that are taken. */
export const supportedRoute: FastifyPluginAsync<{ facilitator: Facilitator }> = async (
  app,
  { facilitator },
) => {
  for (const url of urlsOf("supported")) app.get(url, () => facilitator.supported());
};
