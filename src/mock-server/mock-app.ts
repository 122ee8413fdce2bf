import cors from "@fastify/cors";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { FixtureAnswer, FixtureRequest } from "../fixtures/engine/answer.ts";
import type { FixtureEngine } from "../fixtures/engine/engine.ts";
import { defaultContracts } from "../fixtures/engine/environment.ts";
import { type Listening, refuseForeign } from "../local-server/refuse-foreign.ts";
import { addToBuiltIn, type NetworkTier } from "../protocol/networks.ts";
import type { PaymentStore } from "../studio/payment-store.ts";
import { describeStudioApi, serveStudio } from "../studio/serve-studio.ts";
import { mockControlRoutes } from "./control-routes.ts";
import { publishCall } from "./publish-calls.ts";
import { sendAnswer } from "./send-answer.ts";

/** Beyond what the service takes, so that the fixtures get to refuse what is too large as it does. */
const bodyLimit = 16 * 1024 * 1024;

/** What clients in a browser may read besides the usual. */
const exposedHeaders = ["location", "retry-after", "www-authenticate", "x-request-id", "x-settlement-state"];

/** The fixtures as an HTTP server, not listening yet; `listening` says where it will. */
export async function createMockApp(
  fixtures: FixtureEngine,
  listening: Listening,
  { describe, store, serviceId }: { describe: () => object; store: PaymentStore; serviceId: string },
): Promise<FastifyInstance> {
  const app = Fastify({
    bodyLimit,
    // Connections that clients keep open, or that wait for a late answer, do not hold up the end.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 200 },
    schemaController: { compilersFactory: noSchemas },
  });
  await app.register(cors, { origin: "*", exposedHeaders });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  await app.register(async (scope) => {
    refuseForeign(scope, listening);
    mockControlRoutes(scope, fixtures);
  });
  const { networks } = fixtures.environment;
  const contractOn = (wanted: NetworkTier) =>
    networks.find(({ tier }) => tier === wanted)?.facilitatorContract ?? defaultContracts[wanted];
  await app.register(async (scope) => {
    refuseForeign(scope, listening);
    serveStudio(scope, {
      store,
      contracts: { mainnet: contractOn("mainnet"), testnet: contractOn("testnet") },
      networks: addToBuiltIn(networks),
    });
    scope.get("/harness", describe);
  });
  app.get("/openapi.json", async () =>
    (await import("../protocol/openapi.ts")).describeService(undefined, describeStudioApi()),
  );

  /** The answer, which the studio is told of too. */
  async function answerTo(request: FixtureRequest): Promise<FixtureAnswer> {
    const from = performance.now();
    const answer = await fixtures.reply(request);
    const call = fixtures.calls.findLast((one) => one.request === request);
    if (call !== undefined) publishCall(call, { serviceId, tookMs: performance.now() - from });
    return answer;
  }
  app.route({
    method: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    url: "/*",
    handler: async (request, reply) => sendAnswer(request, reply, await answerTo(read(request))),
    // What Fastify itself cannot read, such as a content type that is none: the fixtures know what the service says.
    errorHandler: async (error, request, reply) => {
      if (error.code !== "FST_ERR_CTP_INVALID_MEDIA_TYPE") throw error;
      return sendAnswer(request, reply, await answerTo(read(request)));
    },
  });
  return app;
}

function read({ method, url, headers, body }: FastifyRequest): FixtureRequest {
  return {
    method,
    path: url,
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
      ),
    ),
    body: typeof body === "string" && body !== "" ? body : undefined,
  };
}

/** No route has a schema for Fastify, whose compilers take a while to load. */
const noSchemas = { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema };

function refuseSchema(): never {
  throw new Error("routes have no Fastify schemas here; parse with zod");
}
