import type { IncomingMessage } from "node:http";
import type { FastifyBaseLogger } from "fastify";
import fp from "fastify-plugin";
import type { NetworkName } from "../../../protocol/networks.ts";
import type { Operation } from "../../../protocol/problems.ts";
import type { Envelope, PaymentRequest } from "../../../protocol/requests.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Names the service on the channels. */
    serviceId: string;
    /** `routeOptions`, which Fastify makes anew at every access. */
    route: Pick<FastifyRequest["routeOptions"], "url" | "config">;
    /** The part of the payment that was read first; problems repeat it. */
    envelope: Envelope | undefined;
    /** The network of the envelope, if it is a known one; the envelope may hold any text. */
    networkName: NetworkName | undefined;
    /** The payment, where it is well formed. */
    payment: PaymentRequest | undefined;
  }
  interface FastifyContextConfig {
    /** Which x402 members the problems of this route carry. */
    operation?: Operation;
  }
}

/** What the other plugins read of a request; every answer has the caller's request id, or ours. Registered first. */
export const requestContext = fp<{ serviceId: string }>(async (app, { serviceId }) => {
  app.decorateRequest("serviceId", serviceId);
  app.decorateRequest("route");
  app.decorateRequest("envelope", undefined);
  app.decorateRequest("networkName", undefined);
  app.decorateRequest("payment", undefined);

  // Hooks call back instead of being async: every request runs all of them.
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", callerRequestId(request.headers["x-request-id"]) ?? request.id);
    request.route = request.routeOptions;
    done();
  });
});

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
