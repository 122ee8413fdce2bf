import type { FastifyRequest } from "fastify";
import { problemDetails } from "../../protocol/problems.ts";
import type { Invalid } from "../../protocol/reasons.ts";
import { parsePaymentRequest } from "../../protocol/requests.ts";
import type { RequestResult } from "../plugins/request-log.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** Reads the payment of a request's body, and keeps what could be read for problems and the log. */
export function readPaymentRequest(request: FastifyRequest): ReturnType<typeof parsePaymentRequest> {
  if (request.body === undefined) throw new ProblemError("malformed", problemDetails.empty);
  const parsed = parsePaymentRequest(request.body);
  request.envelope = parsed.ok ? parsed.request : parsed.envelope;
  request.payment = parsed.ok ? parsed.request : undefined;
  return parsed;
}

/** How a request ended whose payment is invalid. */
export function invalidResult({ reason, message }: Invalid): RequestResult {
  return { outcome: "invalid", reason, message };
}
