import cors from "@fastify/cors";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { FixtureRequest } from "../fixtures/engine/answer.ts";
import type { FixtureEngine } from "../fixtures/engine/engine.ts";
import { type Listening, refuseForeign } from "../local-server/refuse-foreign.ts";
import { mockControlRoutes } from "./control-routes.ts";
import { sendAnswer } from "./send-answer.ts";

/** Beyond what the service takes, so that the fixtures get to refuse what is too large as it does. */
const bodyLimit = 16 * 1024 * 1024;

/** What clients in a browser may read besides the usual. */
const exposedHeaders = ["location", "retry-after", "www-authenticate", "x-request-id", "x-settlement-state"];

/** The fixtures as an HTTP server, not listening yet; `listening` says where it will. */
export async function createMockApp(fixtures: FixtureEngine, listening: Listening): Promise<FastifyInstance> {
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
  app.get("/openapi.json", async () => (await import("../protocol/openapi.ts")).describeService());
  app.route({
    method: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    url: "/*",
    handler: async (request, reply) => sendAnswer(request, reply, await fixtures.reply(read(request))),
    // What Fastify itself cannot read, such as a content type that is none: the fixtures know what the service says.
    errorHandler: async (error, request, reply) => {
      if (error.code !== "FST_ERR_CTP_INVALID_MEDIA_TYPE") throw error;
      return sendAnswer(request, reply, await fixtures.reply(read(request)));
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
