import { randomUUID } from "node:crypto";
import helmet from "@fastify/helmet";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { UndeterminedError } from "../errors.ts";
import type { Facilitator } from "../facilitator/facilitator.ts";
import { type Metrics, noMetrics } from "../metrics/metrics.ts";
import type { Organizations } from "../organizations/organizations.ts";
import { bodyLimit, problemBody, problemDetails, problemMediaType } from "../protocol/problems.ts";
import { answerClientError, answerUnroutable } from "./plugins/client-errors.ts";
import { closePromptly } from "./plugins/close-promptly.ts";
import { confirmEarlierAnswers, followExchange } from "./plugins/connection.ts";
import { limitPressure, type PressureLimits } from "./plugins/pressure.ts";
import { classify, ProblemError } from "./plugins/problems.ts";
import { limitRates, type RateLimits } from "./plugins/rate-limits.ts";
import { type EndedPayment, logFieldsOf, logRequests } from "./plugins/request-log.ts";
import { followRoutes } from "./routes/allowed-methods.ts";
import { type CheckHealth, healthRoutes } from "./routes/health.ts";
import { openApiRoutes } from "./routes/openapi.ts";
import { paymentRoutes } from "./routes/payments.ts";
import { settlementRoutes } from "./routes/settlements.ts";
import { defaultTimeouts, type Timeouts } from "./timeouts.ts";

export type AppOptions = {
  facilitator: Facilitator;
  organizations: Organizations;
  checkHealth: CheckHealth;
  /** Unix milliseconds, for the timestamps of answers. */
  now: () => number;
  /** Whether verify takes callers without a key. Off by default. */
  anonymousVerify?: boolean;
  /** Where to tell what happened; nowhere by default. See `createMetrics`. */
  metrics?: Metrics;
  /** Told of every verify and settle that has ended; for journals of tests. */
  onPayment?: ((ended: EndedPayment) => void) | undefined;
  /** How many requests are taken from a key and from an address; unlimited by default. */
  rateLimits?: RateLimits;
  /** What the process takes on at a time; unlimited by default. */
  pressure?: PressureLimits;
  /** Connections open at a time; further ones are closed as they come. Unlimited by default. */
  maxConnections?: number;
  /**
   * Whose `X-Forwarded-For` is believed: that of so many proxies in front, where nobody can come past them, or of those
   * at these addresses and networks. By default nobody's: anybody can write such a header.
   */
  trustProxy?: false | number | readonly string[];
  timeouts?: Timeouts;
  logger: FastifyBaseLogger;
};

/** The HTTP service, not listening yet. Everything that decides is in the facilitator; this parses and maps. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { facilitator, organizations, checkHealth, now, anonymousVerify = false, logger } = options;
  const { metrics = noMetrics, trustProxy = false, timeouts = defaultTimeouts } = options;
  const app = Fastify({
    bodyLimit,
    trustProxy: whoIsTrusted(trustProxy),
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkMs,
      // Checked below, so that its absence is a problem like any other.
      requireHostHeader: false,
    },
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    schemaController: { compilersFactory: noSchemas },
    routerOptions: { caseSensitive: true, ignoreTrailingSlash: true },
    clientErrorHandler: (error, socket) => answerClientError(error, socket, logger),
    frameworkErrors: answerUnroutable,
    // Fastify's own answer to requests while it closes says nothing that x402 clients understand.
    return503OnClosing: false,
  });
  if (options.maxConnections !== undefined) app.server.maxConnections = options.maxConnections;
  await app.register(helmet);

  app.removeContentTypeParser("text/plain");
  app.decorateRequest("caller", null);
  app.decorateRequest("exchange");
  app.decorateRequest("route");
  app.decorateRequest("envelope", undefined);
  app.decorateRequest("payment", undefined);
  app.decorateRequest("result", undefined);

  const allowedMethods = followRoutes(app);
  // Hooks of requests call back instead of being async: every request runs all of them.
  app.addHook("onRequest", (request, reply, done) => {
    const { raw } = request;
    reply.header("x-request-id", request.id);
    confirmEarlierAnswers(raw.socket);
    request.exchange = followExchange(raw, reply.raw);
    request.route = request.routeOptions;
    done();
  });
  logRequests(app, { metrics, onPayment: options.onPayment });
  app.addHook("onRequest", ({ raw }, _reply, done) => {
    if (raw.headers.host === undefined && raw.httpVersion === "1.1") {
      throw new ProblemError("malformed", "The request has no Host header");
    }
    done();
  });
  closePromptly(app);
  if (options.rateLimits !== undefined) limitRates(app, options.rateLimits);
  const underWay = limitPressure(app, options.pressure);
  metrics.observe({ underWay: () => underWay });

  app.setErrorHandler((error, request, reply) => {
    const classified = classify(error);
    const { kind, retryAfterSeconds } = classified;
    const { status, name } = kind;
    const outcome = status >= 500 ? "undetermined" : "refused";
    request.result = { outcome, reason: name, message: classified.detail };
    if (status >= 500 && !(error instanceof ProblemError)) {
      // What a node did to us is no fault of ours, and what keeps nobody from an answer is no trouble.
      const foreseen = error instanceof UndeterminedError;
      const level = !foreseen ? "error" : request.exchange.end === "cut" ? "debug" : "warn";
      request.log[level]({ ...logFieldsOf(request), err: error }, "no verdict");
    }
    if (retryAfterSeconds !== undefined) reply.header("retry-after", retryAfterSeconds);
    if (status === 401) reply.header("www-authenticate", "Bearer");
    const { operation } = request.route.config;
    return reply
      .code(status)
      .type(problemMediaType)
      .send(problemBody(classified, { operation, requestId: request.id, envelope: request.envelope }));
  });
  app.setNotFoundHandler((request, reply) => {
    const allowed = allowedMethods(request.url.split("?")[0] ?? "");
    if (allowed.length > 0) {
      reply.header("allow", allowed.join(", "));
      throw new ProblemError(
        "methodNotAllowed",
        problemDetails.methodNotAllowed(request.method, pathOf(request.url), allowed),
      );
    }
    throw new ProblemError(
      "notFound",
      `There is no ${request.method} ${pathOf(request.url)}; the service is at POST /v1/verify, POST /v1/settle, GET /v1/supported and GET /v1/settlements/{id}; it is described at /docs`,
    );
  });

  await app.register(
    async (v1) => {
      paymentRoutes(v1, { facilitator, organizations, metrics, now, anonymousVerify });
      settlementRoutes(v1, { facilitator, organizations });
      v1.get("/supported", () => facilitator.supported());
    },
    { prefix: "/v1" },
  );
  healthRoutes(app, checkHealth);
  openApiRoutes(app);
  return app;
}

/**
 * Bodies are read by zod, and no route has a schema for Fastify. Its compilers are loaded even so unless others are
 * given, which takes a twentieth of the start.
 */
const noSchemas = { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema };

function refuseSchema(): never {
  throw new Error("routes have no Fastify schemas here; parse with zod");
}

/** Fastify takes a number to mean nobody, since it cannot know whether the proxies can be come past. */
function whoIsTrusted(proxies: false | number | readonly string[]) {
  if (typeof proxies === "number") return (_address: string, hop: number) => hop < proxies;
  return proxies === false ? false : [...proxies];
}

/** A path to repeat to whoever asked for it. */
function pathOf(url: string): string {
  const path = url.split("?")[0] ?? "";
  return path.length > 100 ? `${path.slice(0, 100)}…` : path;
}
