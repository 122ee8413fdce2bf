import { randomUUID } from "node:crypto";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { type Metrics, noMetrics } from "../../observe/metrics/metrics.ts";
import type { ClaimedKind } from "../../protocol/answers.ts";
import { builtInNetworks, type NetworkRegistry } from "../../protocol/networks.ts";
import type { ApiBeside } from "../../protocol/openapi.ts";
import { bodyLimit } from "../../protocol/problems.ts";
import type { RequestParser } from "../../protocol/requests.ts";
import { type CorsOrigins, corsOptions } from "../../protocol/routes.ts";
import type { Catalog } from "../discovery/catalog.ts";
import type { Facilitator } from "../facilitator/facilitator.ts";
import type { Organizations } from "../organizations/organizations.ts";
import { defaultTimeouts, noSchemas, serverTimeouts, type Timeouts } from "./connections/listen.ts";
import { type ConnectionLimits, connections, refuseWhileClosing } from "./connections/open-connections.ts";
import { type Listening, refuseForeignOnLoopback } from "./local-server.ts";
import { answerUnroutable, errorHandler, refuseUnknownPaths } from "./plugins/error-handler.ts";
import { limitPressure, limitRates, type PressureLimits, type RateLimits } from "./plugins/limits.ts";
import { readBodies } from "./plugins/read-bodies.ts";
import {
  authentication,
  type CallerWithoutKey,
  createRequestLogger,
  createUuid,
  requestContext,
  requireHost,
  securityHeaders,
} from "./plugins/request-context.ts";
import { logRequests, logSettlements } from "./plugins/request-log.ts";
import { createClientErrorHandler } from "./problems/problem-error.ts";
import { docsRoutes, openApiRoute, supportedRoute } from "./routes/docs.ts";
import {
  type CheckHealth,
  discoveryRoutes,
  healthRoutes,
  noteResources,
  settlementRoutes,
} from "./routes/reading-routes.ts";
import { settleRoute, verifyRoute } from "./routes/verify-and-settle.ts";

export type AppOptions = {
  facilitator: Facilitator;
  /** The known networks, served or not; the built-in ones by default. */
  knownNetworks?: NetworkRegistry | undefined;
  /** Reads payments of the accepted methods; all by default. */
  parse?: RequestParser | undefined;
  /** The catalog of paid resources; none by default. */
  catalog?: Catalog | undefined;
  organizations: Organizations;
  checkHealth: CheckHealth;
  /** Unix milliseconds, for the timestamps of answers. */
  now: () => number;
  /** True if verify accepts callers without a key. Off by default. */
  anonymousVerify?: boolean;
  /** The caller of requests without a key, on routes that need one; by default they are refused. Only `up --open` sets it. */
  callerWithoutKey?: CallerWithoutKey | undefined;
  /** Counts requests; off by default. See `createMetrics`. */
  metrics?: Metrics;
  /** Identifies the service on the channels, as in its core; see `FromService`. A random one by default. */
  serviceId?: string;
  /** How many requests are accepted per key and per address; unlimited by default. */
  rateLimits?: RateLimits;
  /** How many requests are processed at the same time; unlimited by default. */
  pressure?: PressureLimits;
  /** How many connections may be open; unlimited by default. */
  connections?: ConnectionLimits;
  /**
   * Whose `X-Forwarded-For` is trusted: that of the given number of proxies in front, if callers cannot bypass them, or
   * of the proxies at these addresses and networks. None by default: any caller can send such a header.
   */
  trustProxy?: false | number | readonly string[];
  /**
   * True if callers on the same machine call without a proxy in between, as with `up` and in tests: a disconnect is
   * then noticed at once, and successes are sent 5 ms earlier. Off by default.
   */
  noProxies?: boolean;
  timeouts?: Timeouts;
  /** The origins of web pages that may call; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /**
   * The address it listens on, if there is no proxy in front: on a loopback address, foreign `Host` and `Origin`
   * headers are then refused. By default none are, since a proxy may send any.
   */
  listening?: Listening;
  /** Kinds that `/supported` lists even though they are refused; none by default. For test suites only. */
  claims?: readonly ClaimedKind[] | undefined;
  /** True if `/docs` serves a page for reading `/openapi.json`. Off by default: its script has 4 MB. */
  docs?: boolean;
  /** Other routes on the address, for `/openapi.json`: the studio of `up`. */
  describeBeside?: (() => ApiBeside | Promise<ApiBeside>) | undefined;
  logger: FastifyBaseLogger;
};

/** Creates the HTTP service, which does not listen yet. It only parses and maps; the facilitator decides. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { facilitator, organizations, checkHealth, now, anonymousVerify = false, logger } = options;
  const { metrics = noMetrics, trustProxy = false, timeouts = defaultTimeouts } = options;
  const { serviceId = randomUUID(), docs = false, noProxies = false } = options;
  const { knownNetworks = builtInNetworks, parse = waysToPay.parse } = options;
  const inTime = serverTimeouts(timeouts);
  const app = Fastify({
    bodyLimit,
    trustProxy: trustedProxies(trustProxy),
    ...inTime,
    http: {
      ...inTime.http,
      // Checked below, so that its absence is reported as a problem.
      requireHostHeader: false,
    },
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: createUuid,
    childLoggerFactory: createRequestLogger,
    schemaController: noSchemas,
    routerOptions: { caseSensitive: true, ignoreTrailingSlash: true },
    clientErrorHandler: createClientErrorHandler(logger),
    frameworkErrors: answerUnroutable,
    // Fastify's own answer while it closes means nothing to x402 clients.
    return503OnClosing: false,
  });
  await app.register(securityHeaders);

  await app.register(connections, { limits: options.connections, timeouts });
  await app.register(requestContext, { serviceId });
  await app.register(logRequests, { metrics });
  await app.register(logSettlements, { serviceId });
  await app.register(errorHandler);
  await app.register(readBodies);
  const { corsOrigins, listening } = options;
  if (listening !== undefined) refuseForeignOnLoopback(app, { ...listening, corsOrigins });
  if (corsOrigins !== undefined) await app.register(import("@fastify/cors"), corsOptions(corsOrigins));
  await app.register(requireHost);
  await app.register(refuseWhileClosing);
  if (options.rateLimits !== undefined) await app.register(limitRates, options.rateLimits);
  await app.register(limitPressure, { limits: options.pressure, metrics });
  await app.register(authentication, { organizations, callerWithoutKey: options.callerWithoutKey });
  await app.register(refuseUnknownPaths);
  const { catalog } = options;
  if (catalog !== undefined) await app.register(noteResources, { catalog });

  await app.register(verifyRoute, { facilitator, parse, knownNetworks, now, anonymousVerify });
  await app.register(settleRoute, { facilitator, parse, knownNetworks, metrics, noProxies });
  await app.register(settlementRoutes, { facilitator, knownNetworks });
  await app.register(discoveryRoutes, { catalog, knownNetworks });
  await app.register(supportedRoute, { facilitator, claims: options.claims ?? [] });
  await app.register(healthRoutes, { checkHealth });
  await app.register(openApiRoute, { knownNetworks, describeBeside: options.describeBeside });
  if (docs) await app.register(docsRoutes);
  return app;
}

/** Fastify ignores a number of proxies, since it cannot know if callers can bypass them. */
function trustedProxies(proxies: false | number | readonly string[]) {
  if (typeof proxies === "number") return (_address: string, hop: number) => hop < proxies;
  return proxies === false ? false : [...proxies];
}

/**
 * A server beside the service, on an address that only operators reach: few connections, small bodies, the timeouts of
 * the service, and no log line per request.
 */
export function createInternalApp(
  logger: FastifyBaseLogger,
  limits: ConnectionLimits,
  timeouts: Timeouts = defaultTimeouts,
): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    ...serverTimeouts(timeouts),
    bodyLimit: 1_024,
  });
  app.register(connections, { limits, timeouts });
  return app;
}

/** The metrics, as prom-client's `Registry`. */
export type MetricsRegister = { readonly contentType: string; metrics(): Promise<string> };

/**
 * `GET /metrics` for Prometheus, on a separate server: callers of the service must not see which networks and customers
 * are busy, or how much gas money is left. It needs no key, so bind it to an address that only the collector reaches.
 */
export function createMetricsApp(register: MetricsRegister, logger: FastifyBaseLogger): FastifyInstance {
  const app = createInternalApp(logger, { max: 100, maxPerAddress: 50 });
  app.get("/metrics", async (_request, reply) =>
    reply.type(register.contentType).send(await register.metrics()),
  );
  app.setNotFoundHandler((_, reply) => reply.code(404).send({ error: "There is GET /metrics" }));
  return app;
}
