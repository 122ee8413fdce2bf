import { type Route, type RouteName, routes } from "../../protocol/routes.ts";

/** How long the server waits for its clients, in milliseconds. Nothing here limits how long a settle may take. */
export type Timeouts = {
  /** For the request line and the headers. */
  headersMs: number;
  /** For the whole request, body included. */
  requestMs: number;
  /** For the next request on an open connection. */
  keepAliveMs: number;
  /** For the client to read: a connection to which nothing more could be written for that long is closed. */
  stalledMs: number;
  /** How often the others are checked. */
  checkMs: number;
};

/**
 * A request is about 1 KiB: a client that takes longer is slow on purpose, or has left. Connections stay open for longer
 * than load balancers keep theirs (usually 60 s): otherwise the balancer would send a request into a connection that is
 * just being closed.
 */
export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 20_000,
  keepAliveMs: 75_000,
  stalledMs: 30_000,
  checkMs: 2_000,
};

/** The time-outs that Node keeps, as options of a Fastify server. */
export function serverTimeouts({ headersMs, requestMs, keepAliveMs, checkMs }: Timeouts) {
  return {
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    http: { headersTimeout: headersMs, connectionsCheckingInterval: checkMs },
  };
}

/** Where a route is, as Fastify writes parameters. */
export function urlsOf(name: RouteName): readonly string[] {
  const { paths }: Route = routes[name];
  return paths.map((path) => path.replace(/\{(\w+)\}/g, ":$1"));
}

/**
 * For Fastify's `schemaController`: no route has a schema for it, since bodies are read by zod. Its compilers are loaded
 * even so unless others are given, which takes a twentieth of the start.
 */
export const noSchemas = {
  compilersFactory: { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema },
};

function refuseSchema(): never {
  throw new Error("routes have no Fastify schemas here; parse with zod");
}
