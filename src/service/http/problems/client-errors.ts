import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { ConnectionError } from "fastify";
import type { ServiceLog } from "../../../observe/log/logger.ts";
import { answerUnreadableRequest } from "../../../protocol/unreadable-request.ts";
import { afterWholeRequests } from "../connections/exchange.ts";

/** How long a connection stays open after its last answer, so that the peer can read it. */
const lingerMs = 500;

/** Connections that got their answer: the parser reports an error for every further byte. */
const answered = new WeakSet<Socket>();

/**
 * Answers what is not HTTP, before there is a request: 400, 408 for what comes too slowly, 431 for headers that are too
 * large. Requests that came in full before it on the connection are answered first; then the connection is closed.
 */
export function answerClientError(error: ConnectionError, socket: Socket, log: ServiceLog): void {
  if (error.code === "ECONNRESET" || answered.has(socket)) return;
  answered.add(socket);
  log.debug({ code: error.code }, "not answered: the request is not HTTP, too slow or too large");
  afterWholeRequests(socket, () => {
    if (!socket.writable) return;
    socket.end(answerUnreadableRequest(error.code, randomUUID()));
    // Destroyed at once, with bytes of the peer unread, the connection would be reset under the answer.
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
}
