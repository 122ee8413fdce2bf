import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { ConnectionError } from "fastify";
import type { ServiceLog } from "../../logging/logger.ts";
import { problemBody, problemMediaType } from "../../protocol/problems.ts";
import { http } from "../../util/node-http.ts";
import { afterWholeRequests } from "../connections/exchange.ts";
import { classify, ProblemError } from "./problem-error.ts";

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
    socket.end(write(problemOf(error)));
    // Destroyed at once, with bytes of the peer unread, the connection would be reset under the answer.
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
}

/** The bytes of an answer: without a request there is no response object. */
function write(error: ProblemError): string {
  const requestId = randomUUID();
  const problem = classify(error);
  const { status } = problem.kind;
  const body = JSON.stringify(problemBody(problem, { operation: undefined, requestId, envelope: undefined }));
  return [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `content-type: ${problemMediaType}; charset=utf-8`,
    `content-length: ${Buffer.byteLength(body)}`,
    "x-content-type-options: nosniff",
    `x-request-id: ${requestId}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}

function problemOf({ code }: ConnectionError): ProblemError {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new ProblemError("timeout", "The request did not arrive in time");
    case "HPE_HEADER_OVERFLOW":
      return new ProblemError("headersTooLarge", "The request line and the headers may have at most 16 KiB");
    default:
      return new ProblemError("malformed", "This is not an HTTP request");
  }
}
