import { randomUUID } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { readOpenFileLimit } from "../config/open-files.ts";
import type { FixtureRequest } from "../fixtures/engine/answer.ts";
import type { FixtureEngine } from "../fixtures/engine/engine.ts";
import { defaultContracts } from "../fixtures/engine/environment.ts";
import { localConnectionCapacity } from "../http/limits/connection-capacity.ts";
import { connections } from "../http/plugins/connections.ts";
import { answerClientError } from "../http/problems/client-errors.ts";
import { defaultTimeouts, serverTimeouts, type Timeouts } from "../http/timeouts.ts";
import { type Listening, refuseForeign } from "../local-server/refuse-foreign.ts";
import { type CorsOrigins, corsOptions } from "../protocol/cors.ts";
import { tokensOf } from "../protocol/known-token.ts";
import { addToBuiltIn, type NetworkTier } from "../protocol/networks.ts";
import { bodyLimit, problemBody, problemKinds, problemMediaType } from "../protocol/problems.ts";
import { noHost } from "../protocol/unreadable-request.ts";
import type { PaymentStore } from "../studio/payment-store.ts";
import { describeStudioApi, serveStudio } from "../studio/serve-studio.ts";
import { joinHeaders } from "../util/join-headers.ts";
import { noSchemas } from "../util/no-schemas.ts";
import { mockControlRoutes } from "./control-routes.ts";
import { publishCall } from "./publish-calls.ts";
import { sendAnswer } from "./send-answer.ts";
import { type Sessions, sessionPath, splitSessionPath } from "./sessions.ts";

/** More than the service accepts, so that the fixtures refuse larger bodies as it does. */
const mostRead = 16 * 1024 * 1024;

const tooLarge = " ".repeat(bodyLimit + 1);

export type MockAppOptions = Listening & {
  /** None by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** Those of the service by default. */
  timeouts?: Timeouts;
};

/** The fixtures as an HTTP server, not listening yet: the root's, and those of sessions. */
export async function createMockApp(
  sessions: Sessions,
  { corsOrigins, timeouts = defaultTimeouts, ...listening }: MockAppOptions,
  { describe, store, serviceId }: { describe: () => object; store: PaymentStore; serviceId: string },
): Promise<FastifyInstance> {
  /** Requests below a session's path are routed as if its facilitator were at the root. */
  const inSession = new WeakMap<object, { engine: FixtureEngine; base: string }>();
  const facilitatorOf = ({ raw }: FastifyRequest) =>
    inSession.get(raw) ?? { engine: sessions.root, base: "" };
  const inTime = serverTimeouts(timeouts);
  const app = Fastify({
    bodyLimit: mostRead,
    genReqId: () => randomUUID(),
    // Connections that clients keep open, or that wait for a late answer, do not hold up the end.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 200 },
    schemaController: noSchemas,
    ...inTime,
    http: {
      ...inTime.http,
      // Asked for below, so that its absence is a problem as the service writes it.
      requireHostHeader: false,
    },
    // What is no request that the fixtures could see.
    clientErrorHandler: (error, socket) => answerClientError(error, socket, app.log),
    // Paths that cannot be decoded.
    frameworkErrors: (_error, request, reply) => void answer(request, reply),
    rewriteUrl(request) {
      const { url = "/" } = request;
      const split = splitSessionPath(url);
      const engine = split && sessions.find(split.id);
      if (split === undefined || engine === undefined) return url;
      inSession.set(request, { engine, base: sessionPath(split.id) });
      return split.path;
    },
  });
  await app.register(connections, { limits: localConnectionCapacity(readOpenFileLimit()), timeouts });
  app.addHook("onRequest", async ({ raw: { headers, httpVersion }, id: requestId }, reply) => {
    if (headers.host !== undefined || httpVersion !== "1.1") return;
    const problem = { kind: problemKinds.malformed, detail: noHost };
    const body = problemBody(problem, { operation: undefined, requestId, envelope: undefined });
    await reply.code(problem.kind.status).type(problemMediaType).send(body);
  });
  if (corsOrigins !== undefined) await app.register(import("@fastify/cors"), corsOptions(corsOrigins));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  await app.register(async (scope) => {
    refuseForeign(scope, listening);
    mockControlRoutes(scope, { sessions, engineOf: (request) => facilitatorOf(request).engine });
  });
  const { networks } = sessions.root.environment;
  const contractOn = (wanted: NetworkTier) =>
    networks.find(({ tier }) => tier === wanted)?.facilitatorContract ?? defaultContracts[wanted];
  await app.register(async (scope) => {
    refuseForeign(scope, listening);
    serveStudio(scope, {
      store,
      contracts: { mainnet: contractOn("mainnet"), testnet: contractOn("testnet") },
      networks: addToBuiltIn(networks),
      // Each session may have one.
      hasOwnClock: () => true,
      tokens: tokensOf(networks),
    });
    scope.get("/harness", describe);
  });
  let document: Promise<string> | undefined;
  async function describeApi(): Promise<string> {
    const { describeService } = await import("../protocol/openapi.ts");
    const { apiKey } = sessions.root.environment.keys.local;
    return JSON.stringify(describeService(undefined, { ...describeStudioApi(), example: { apiKey } }));
  }
  app.get("/openapi.json", (_request, reply) => {
    document ??= describeApi();
    reply.type("application/json; charset=utf-8");
    return document;
  });

  // Every path is the fixtures' to answer, whatever its method; and what Fastify itself cannot read: they know what the
  // service says.
  app.setNotFoundHandler(answer);
  app.setErrorHandler((error, request, reply) => {
    switch (Reflect.get(Object(error), "code")) {
      case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
        return answer(request, reply);
      case "FST_ERR_CTP_BODY_TOO_LARGE":
        // Not read: the fixtures are given another one that is too large for them.
        return answer(request, reply, tooLarge);
      default:
        throw error;
    }
  });
  return app;

  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    body: unknown = request.body,
  ): Promise<FastifyReply> {
    const { engine, base } = facilitatorOf(request);
    const sent = read(request, body);
    const from = performance.now();
    const answered = await engine.reply(sent);
    // For the studio.
    const call = engine.calls.findLast((one) => one.request === sent);
    if (call !== undefined) publishCall(call, { serviceId, tookMs: performance.now() - from });
    return sendAnswer(request, reply, answered, base);
  }
}

function read({ method, url, headers }: FastifyRequest, body: unknown): FixtureRequest {
  return {
    method,
    path: url,
    headers: joinHeaders(headers),
    body: typeof body === "string" && body !== "" ? body : undefined,
  };
}
