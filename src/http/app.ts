import { randomUUID } from "node:crypto";
import helmet from "@fastify/helmet";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { Facilitator } from "../facilitator/facilitator.ts";
import type { Organizations } from "../organizations/organizations.ts";
import { confirmEarlierAnswers } from "./delivery.ts";
import { type CheckHealth, healthRoutes } from "./health.ts";
import { openApiRoutes } from "./openapi.ts";
import { paymentRoutes } from "./payments.ts";
import { classify, ProblemError, problemBody, problemMediaType } from "./problems.ts";
import { settlementRoutes } from "./settlements.ts";

/** The largest body that is read, in bytes. Payments are about 1 KiB. */
const bodyLimit = 32 * 1024;

export type AppOptions = {
  facilitator: Facilitator;
  organizations: Organizations;
  checkHealth: CheckHealth;
  /** Unix milliseconds, for the timestamps of answers. */
  now: () => number;
  /** Whether verify takes callers without a key. Off by default. */
  anonymousVerify?: boolean;
  logger: FastifyBaseLogger;
};

/** The HTTP service, not listening yet. Everything that decides is in the facilitator; this parses and maps. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { facilitator, organizations, checkHealth, now, anonymousVerify = false, logger } = options;
  const app = Fastify({
    bodyLimit,
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    routerOptions: { caseSensitive: true, ignoreTrailingSlash: true },
  });
  await app.register(helmet);

  app.removeContentTypeParser("text/plain");
  app.decorateRequest("caller", null);
  app.decorateRequest("envelope", undefined);

  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    confirmEarlierAnswers(request.raw.socket);
  });
  app.addHook("onResponse", async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        organization: request.caller?.organization.id,
      },
      "request",
    );
  });

  app.setErrorHandler((error, request, reply) => {
    const classified = classify(error);
    const { status } = classified.kind;
    if (status >= 500) request.log.error({ err: error }, "no verdict");
    if (status === 503) reply.header("retry-after", 1);
    if (status === 401) reply.header("www-authenticate", "Bearer");
    const { operation } = request.routeOptions.config;
    return reply
      .code(status)
      .type(problemMediaType)
      .send(problemBody(classified, { operation, requestId: request.id, envelope: request.envelope }));
  });
  app.setNotFoundHandler((request) => {
    throw new ProblemError(
      "notFound",
      `There is no ${request.method} ${request.url.split("?")[0]}; the service is at POST /v1/verify, POST /v1/settle, GET /v1/supported and GET /v1/settlements/{id}; it is described at /docs`,
    );
  });

  await app.register(
    async (v1) => {
      paymentRoutes(v1, { facilitator, organizations, now, anonymousVerify });
      settlementRoutes(v1, { facilitator, organizations });
      v1.get("/supported", () => facilitator.supported());
    },
    { prefix: "/v1" },
  );
  healthRoutes(app, checkHealth);
  openApiRoutes(app);
  return app;
}
