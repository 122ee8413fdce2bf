import type { FastifyRequest } from "fastify";
import { channels, type RequestResult } from "../../../observe/channels/channels.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { withShopsResource } from "../../../protocol/payment-identifier.ts";
import { type Operation, problemDetails } from "../../../protocol/problems.ts";
import type { ParsedRequest, RequestParser } from "../../../protocol/requests.ts";
import { traceHeadersOf } from "../plugins/request-log.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** Reads the payment of a request's body, and keeps what could be read for problems and the log. */
export function readPaymentRequest(
  request: FastifyRequest,
  operation: Operation,
  { parse, knownNetworks }: { parse: RequestParser; knownNetworks: NetworkRegistry },
): ParsedRequest {
  if (request.body === undefined) throw new ProblemError("malformed", problemDetails.empty);
  const parsed = parse(request.body, knownNetworks);
  const envelope = parsed.ok ? parsed.request : parsed.envelope;
  request.envelope = envelope;
  request.networkName = knownNetworks.find(envelope.network, envelope.x402Version)?.name;
  if (!parsed.ok) return parsed;
  parsed.request = withShopsResource(parsed.request, request.headers["idempotency-key"]);
  const payment = parsed.request;
  request.payment = payment;
  const { serviceId, id: requestId } = request;
  channels.request.publish(() => ({
    kind: "request",
    at: Date.now(),
    serviceId,
    requestId,
    headers: traceHeadersOf(request),
    operation,
    settlementId: payment.settlementId,
    payment,
    body: request.receivedBytes?.text,
  }));
  if (parsed.identifierProblem !== undefined) throw new ProblemError("malformed", parsed.identifierProblem);
  return parsed;
}

/** How a request ended whose payment is invalid. */
export function invalidResult({ reason, message, situation, chainTime }: Invalid): RequestResult {
  return { outcome: "invalid", reason, message, situation, ...(chainTime !== undefined && { chainTime }) };
}
