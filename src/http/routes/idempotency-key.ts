import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { IdempotencyKey } from "../../facilitator/idempotent.ts";
import { jsonText } from "../../protocol/json-text.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import { idempotencyKeyFormat, problemDetails } from "../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";

/**
 * Reads the `Idempotency-Key` header; undefined when there is none. Keys are stored, so they are bounded in length, and
 * refused where two readers could read them as different keys.
 */
export function readIdempotencyKey({ headers, body }: FastifyRequest): IdempotencyKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && idempotencyKeyFormat.test(key)) return { key, bodyHash: hashBody(body) };
  throw new ProblemError("malformed", problemDetails.idempotencyKey);
}

/**
 * Whether the shop wants successes repeated to the identifiers that its payers' clients send: it sends the extension's name
 * in place of its own key.
 */
export function asksForRepeats({ headers }: FastifyRequest): boolean {
  return headers["idempotency-key"] === paymentIdentifierExtension;
}

function hashBody(body: unknown): string {
  return createHash("sha256").update(jsonText(body)).digest("hex");
}
