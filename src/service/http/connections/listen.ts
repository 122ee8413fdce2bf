import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Route, type RouteName, routes } from "../../../protocol/routes.ts";
import { currentExchange } from "./exchange.ts";

/** How long the server waits for its clients, in milliseconds. None of these limits the duration of a settle. */
export type Timeouts = {
  /** For the request line and the headers. */
  headersMs: number;
  /** For the whole request, body included. */
  requestMs: number;
  /** For the next request on an open connection. */
  keepAliveMs: number;
  /** For the client to read: a connection is closed if nothing could be written to it for this long. */
  stalledMs: number;
  /** How often the other limits are checked. */
  checkMs: number;
};

/**
 * A request is about 1 KiB: a client that takes longer is slow on purpose, or has left. Connections are kept open for
 * longer than load balancers keep theirs (usually 60 s). Otherwise a balancer could send a request on a connection that
 * is just being closed.
 */
export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 20_000,
  keepAliveMs: 75_000,
  stalledMs: 30_000,
  checkMs: 2_000,
};

/** The timeouts that Node enforces, as options of a Fastify server. */
export function serverTimeouts({ headersMs, requestMs, keepAliveMs, checkMs }: Timeouts) {
  return {
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    http: { headersTimeout: headersMs, connectionsCheckingInterval: checkMs },
  };
}

/** The paths of a route, with Fastify's syntax for parameters. */
export function urlsOf(name: RouteName): readonly string[] {
  const { paths }: Route = routes[name];
  return paths.map((path) => path.replace(/\{(\w+)\}/g, ":$1"));
}

/**
 * For Fastify's `schemaController`: routes have no schemas, since zod reads the bodies. Without this, Fastify would
 * load its compilers anyway, which takes a twentieth of the start.
 */
export const noSchemas = {
  compilersFactory: { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema },
};

function refuseSchema(): never {
  throw new Error("routes have no Fastify schemas here; parse with zod");
}

/**
 * The number of sockets that listen on a server's port in addition to its own. Per turn, the event loop accepts one new
 * connection per socket, however many are waiting. With one socket, a burst of callers is accepted only as fast as a
 * busy process turns, and each is handled alone. With sixteen, sixteen are accepted at a time.
 */
const furtherSockets = 15;

const acceptors = new WeakMap<Server, readonly Server[]>();

/**
 * Listens on a port, with several sockets if the system supports it (Linux). Returns the address as a URL.
 *
 * @throws Error as a server's `listen` does: with the code `EADDRINUSE` if the port is in use
 */
export async function listen(app: FastifyInstance, address: { host: string; port: number }): Promise<string> {
  if (!(await canShare(address.host))) return app.listen(address);
  // Sockets that share a port do not notice each other, so whether the port is free is tested without sharing.
  if (address.port !== 0) await tryToListen(address);
  const shared = { ...address, reusePort: true };
  const origin = await app.listen(shared);
  const own = app.server.address();
  if (own === null || typeof own === "string") return origin;
  const further = Array.from({ length: furtherSockets }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => app.server.emit("connection", socket)),
  );
  acceptors.set(app.server, further);
  await Promise.all(
    further.map(async (server) => {
      // A missing extra socket is no reason not to start.
      server.on("error", () => {});
      server.listen({ host: own.address, port: own.port, reusePort: true });
      await once(server, "listening").catch(() => {});
    }),
  );
  return origin;
}

/** Closes the extra sockets of a server; resolves when their connections have ended. */
export async function closeFurtherSockets(server: Server): Promise<void> {
  const further = acceptors.get(server) ?? [];
  acceptors.delete(server);
  await Promise.all(further.map((one) => new Promise((resolve) => one.close(resolve))));
}

/** Returns true if sockets of this system can share a port, each accepting part of the new connections. */
async function canShare(host: string): Promise<boolean> {
  return (
    process.platform === "linux" &&
    (await tryToListen({ host, port: 0, reusePort: true }).then(
      () => true,
      () => false,
    ))
  );
}

async function tryToListen(address: { host: string; port: number; reusePort?: true }): Promise<void> {
  const server = createServer();
  server.listen(address);
  await once(server, "listening");
  server.close();
  await once(server, "close");
}

/** The pauses between two interim responses, in milliseconds: each is twice the previous one. */
const firstPauseMs = 25;
const longestPauseMs = 2_000;

/**
 * Answers clients that close their sending side (FIN) after their request, as `nc -N` and some load balancers do.
 * Without a request in progress, their connection is ended, as Node does by default.
 *
 * A client that has left looks the same as one that only stopped sending. They differ when something is written: the
 * system of a client that has left answers with a reset. So interim responses (102, RFC 2518), which clients skip, are
 * written until the answer is ready. Nothing is read from such a connection anymore, so a reset shows only at the next
 * write. HTTP/1.0 has no interim responses: there the request ends with the connection, as in nginx.
 */
export function answerHalfClosed(server: HttpServer): void {
  // Node has this property, but @types/node does not.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on("connection", (socket: Socket) => socket.once("end", () => askWhetherItReads(socket)));
}

function askWhetherItReads(socket: Socket, pauseMs = firstPauseMs): void {
  const exchange = currentExchange(socket);
  if (exchange === undefined || socket.destroyed) return;
  const { request, response } = exchange;
  if (request.httpVersion === "1.0") {
    socket.end();
    return;
  }
  if (!response.headersSent) response.writeProcessing();
  setTimeout(askWhetherItReads, pauseMs, socket, Math.min(pauseMs * 2, longestPauseMs)).unref();
}
