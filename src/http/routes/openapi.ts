import type { FastifyPluginAsync } from "fastify";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { type ApiBeside, describeService } from "../../protocol/openapi.ts";

/** How long all callers get the same example, in milliseconds: to make one takes a question to a node and a signature. */
const exampleMs = 1_000;

/** `GET /openapi.json`; made when it is first asked for, and with an example, which would grow old, now and again. */
export const openApiRoute: FastifyPluginAsync<{
  knownNetworks: NetworkRegistry;
  describeBeside?: (() => ApiBeside | Promise<ApiBeside>) | undefined;
}> = async (app, { knownNetworks, describeBeside }) => {
  let document: Promise<string> | undefined;
  let isGoodUntil = 0;

  async function describe(): Promise<string> {
    const beside = await describeBeside?.();
    isGoodUntil = beside?.example === undefined ? Number.POSITIVE_INFINITY : performance.now() + exampleMs;
    return JSON.stringify(describeService(knownNetworks, beside));
  }

  app.get("/openapi.json", { config: { countedAs: "documents" } }, async (_request, reply) => {
    if (performance.now() >= isGoodUntil) {
      // Until it is there, whoever asks waits for this one.
      isGoodUntil = Number.POSITIVE_INFINITY;
      document = describe();
      document.catch(() => {
        isGoodUntil = 0;
      });
    }
    reply.type("application/json; charset=utf-8");
    return document;
  });
};
