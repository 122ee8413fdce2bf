import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { jsonText } from "../../../protocol/json-text.ts";
import { readShopsResource } from "../../../protocol/payment-identifier.ts";
import { idempotencyKeyFormat, problemDetails } from "../../../protocol/problems.ts";
import type { IdempotencyKey } from "../../facilitator/idempotent.ts";
import { ProblemError } from "../problems/problem-error.ts";

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
