import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { channels, type RequestResult } from "../../../observe/channels/channels.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { readShopsResource, withShopsResource } from "../../../protocol/payment-identifier.ts";
import { idempotencyKeyFormat, type Operation, problemDetails } from "../../../protocol/problems.ts";
import type { ParsedRequest, RequestParser } from "../../../protocol/requests.ts";
import { jsonText } from "../../../util/json.ts";
import type { IdempotencyKey } from "../../facilitator/idempotent.ts";
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

/**
 * Reads the `Idempotency-Key` header; undefined when there is none. Keys are stored, so they are bounded in length, and
 * refused where two readers could read them as different keys.
 */
function readIdempotencyKey({ headers, body }: FastifyRequest): IdempotencyKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && idempotencyKeyFormat.test(key)) return { key, bodyHash: hashBody(body) };
  throw new ProblemError("malformed", problemDetails.idempotencyKey);
}

/** What the header asks for: the answers of a key of the shop's own, or those of the identifiers that payments carry. */
export function readRepetition(
  request: FastifyRequest,
): { idempotency: IdempotencyKey | undefined } | { repeats: boolean } {
  const shops = readShopsResource(request.headers["idempotency-key"]);
  if (shops === undefined) return { idempotency: readIdempotencyKey(request) };
  return { repeats: shops.resource !== undefined };
}

/** Whether successes are repeated to the identifiers that payments carry; verify takes no key of the shop's own. */
export function asksForRepeats({ headers }: FastifyRequest): boolean {
  return readShopsResource(headers["idempotency-key"])?.resource !== undefined;
}

function hashBody(body: unknown): string {
  return createHash("sha256").update(jsonText(body)).digest("hex");
}
