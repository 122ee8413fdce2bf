import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Route, type RouteName, routes } from "../../../protocol/routes.ts";
import { currentExchange } from "./exchange.ts";

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

/**
 * Sockets that listen on the port of a server, besides its own. The event loop takes one new connection a turn from each
 * socket, however many are waiting: with a single one, a burst of callers is let in as slowly as the turns of a busy
 * process come, and the work of each is done alone. Sixteen let it in sixteen at a time.
 */
const furtherSockets = 15;

const acceptors = new WeakMap<Server, readonly Server[]>();

/**
 * Listens, where the system can (Linux) with several sockets on the one port. Gives the address as a URL.
 *
 * @throws Error as `listen` of a server does: with the code `EADDRINUSE` where the port is taken
 */
export async function listen(app: FastifyInstance, address: { host: string; port: number }): Promise<string> {
  if (!(await canShare(address.host))) return app.listen(address);
  // Sockets that share a port do not notice others that do: whether it is free is found out without sharing.
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
      // One socket less is no reason not to start.
      server.on("error", () => {});
      server.listen({ host: own.address, port: own.port, reusePort: true });
      await once(server, "listening").catch(() => {});
    }),
  );
  return origin;
}

/** Closes the further sockets of a server; resolves when their connections have ended. */
export async function closeFurtherSockets(server: Server): Promise<void> {
  const further = acceptors.get(server) ?? [];
  acceptors.delete(server);
  await Promise.all(further.map((one) => new Promise((resolve) => one.close(resolve))));
}

/** Returns true if sockets of this system can share a port, each with its part of the new connections. */
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

/** The pauses between two interim answers, in milliseconds: each is twice the one before. */
const firstPauseMs = 25;
const longestPauseMs = 2_000;

/**
 * Has clients answered that send no more (FIN) after their request, as `nc -N` and some load balancers do. Without a
 * request under way their connection is ended, as Node does by itself.
 *
 * A client that has left says the same as one that only sends no more. Which it is shows when something is written: the
 * system of the one that has left refuses it with a reset. So interim answers (102, RFC 2518) are written until the
 * answer is there; clients skip them. Nothing is read from such a connection any more, so that the reset shows only at
 * the write after it. HTTP/1.0 has no interim answers: there the request ends with the connection, as nginx means it.
 */
export function answerHalfClosed(server: HttpServer): void {
  // Node has the property, and @types/node does not.
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
