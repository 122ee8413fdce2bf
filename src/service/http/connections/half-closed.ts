import type { Server } from "node:http";
import type { Socket } from "node:net";
import { currentExchange } from "./exchange.ts";

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
export function answerHalfClosed(server: Server): void {
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
