import fp from "fastify-plugin";
import type { NetworkName } from "../../../protocol/networks.ts";
import type { Operation } from "../../../protocol/problems.ts";
import type { Envelope, PaymentRequest } from "../../../protocol/requests.ts";
import { callerRequestId } from "./request-id.ts";

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
