import type { FastifyError } from "fastify";
import { ForbiddenError } from "../errors/forbidden.ts";
import { IdempotencyMismatchError } from "../errors/idempotency.ts";
import { UndeterminedError } from "../errors/undetermined.ts";
import type { Problem } from "../protocol/answers.ts";
import type { Envelope } from "../protocol/requests.ts";

/** The media type of RFC 9457. */
export const problemMediaType = "application/problem+json";

/** Which x402 members a problem carries beside those of RFC 9457. */
export type Operation = "verify" | "settle" | undefined;

type Kind = { status: number; name: string; title: string };

/** A problem, and what may be said about it to the caller. */
export type Classified = { kind: Kind; detail: string; retryAfterSeconds?: number | undefined };

const kinds = {
  malformed: { status: 400, name: "malformed-request", title: "The request could not be read" },
  unauthorized: { status: 401, name: "unauthorized", title: "API key missing or not accepted" },
  forbidden: { status: 403, name: "forbidden", title: "The API key does not allow this" },
  notFound: { status: 404, name: "not-found", title: "Nothing here" },
  timeout: { status: 408, name: "request-timeout", title: "The request came too slowly" },
  tooLarge: { status: 413, name: "body-too-large", title: "The body is too large" },
  uriTooLong: { status: 414, name: "uri-too-long", title: "The path is too long" },
  mediaType: { status: 415, name: "unsupported-media-type", title: "The body must be JSON" },
  idempotency: {
    status: 422,
    name: "idempotency-key-reused",
    title: "Idempotency-Key reused with another body",
  },
  tooManyRequests: { status: 429, name: "too-many-requests", title: "Too many requests" },
  headersTooLarge: { status: 431, name: "headers-too-large", title: "The headers are too large" },
  overloaded: { status: 503, name: "overloaded", title: "The service is overloaded" },
  shuttingDown: { status: 503, name: "shutting-down", title: "The service is shutting down" },
  undetermined: { status: 503, name: "undetermined", title: "No verdict could be reached" },
} as const satisfies Record<string, Kind>;

/** No verdict, said on purpose. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly kind: Kind;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: keyof typeof kinds, detail: string, options: { retryAfterSeconds?: number } = {}) {
    super(detail);
    this.kind = kinds[kind];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Where nothing is known about when it will be better. */
const usualRetryAfterSeconds = 1;

/**
 * Which problem an error is. Errors that do not say otherwise are "could not tell": their text stays inside, since
 * it may name hosts or internals.
 */
export function classify(error: unknown): Classified {
  if (error instanceof ProblemError) {
    const { kind, message, retryAfterSeconds } = error;
    return { kind, detail: message, retryAfterSeconds };
  }
  if (error instanceof ForbiddenError) return { kind: kinds.forbidden, detail: error.message };
  if (error instanceof IdempotencyMismatchError) return { kind: kinds.idempotency, detail: error.message };
  if (error instanceof UndeterminedError) return undetermined(error.message);
  switch (statusOf(error)) {
    case 413:
      return { kind: kinds.tooLarge, detail: "The body may have at most 32 KiB" };
    case 415:
      return { kind: kinds.mediaType, detail: "Send the body with content-type: application/json" };
    case 400:
      return {
        kind: kinds.malformed,
        detail: "The body is not JSON, or names a key that JSON should not carry",
      };
    default:
      return undetermined("Something unforeseen kept the service from a verdict; try again");
  }
}

function undetermined(detail: string): Classified {
  return { kind: kinds.undetermined, detail, retryAfterSeconds: usualRetryAfterSeconds };
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error ? (error as FastifyError).statusCode : undefined;
}

/** The body of a problem, with the x402 members that public clients look for. */
export function problemBody(
  { kind, detail }: Classified,
  context: { operation: Operation; requestId: string; envelope: Envelope | undefined },
): Problem {
  const { operation, requestId, envelope } = context;
  const problem: Problem = {
    type: `urn:x402-facilitator-kit:problem:${kind.name}`,
    title: kind.title,
    status: kind.status,
    detail,
    instance: `urn:uuid:${requestId}`,
  };
  if (operation === undefined) return problem;
  const { network = "", payer } = envelope ?? {};
  const common = { network, ...(payer === undefined ? {} : { payer }) };
  return operation === "verify"
    ? {
        ...problem,
        ...common,
        isValid: false,
        invalidReason: "unexpected_verify_error",
        invalidMessage: detail,
      }
    : {
        ...problem,
        ...common,
        success: false,
        errorReason: "unexpected_settle_error",
        errorMessage: detail,
        transaction: "",
      };
}
