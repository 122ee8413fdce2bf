import type { IncomingMessage } from "node:http";
import type { FastifyBaseLogger } from "fastify";

/** What a caller's request id may be: it is logged, and sent back in a header. */
const format = /^[\w.:~@/+=-]{1,128}$/;

/** The `X-Request-Id` of a caller, where it is one that can be logged and sent back. */
export function callerRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && format.test(header) ? header : undefined;
}

/**
 * Makes the logger of a request: every line has our own id, which is never the same for two requests, and the caller's
 * where there is one.
 */
export function createRequestLogger(
  logger: FastifyBaseLogger,
  bindings: object,
  options: object,
  request: Pick<IncomingMessage, "headers">,
): FastifyBaseLogger {
  const callerId = callerRequestId(request.headers["x-request-id"]);
  return logger.child({ ...bindings, ...(callerId !== undefined && { requestId: callerId }) }, options);
}
