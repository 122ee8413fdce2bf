import type { FastifyError } from "fastify";
import {
  ForbiddenError,
  GasBudgetError,
  IdempotencyMismatchError,
  IdentifierReusedError,
  UndeterminedError,
} from "../../errors.ts";
import { type ProblemKind, problemDetails, problemKinds } from "../../protocol/problems.ts";

/** A problem, and what the answer says about it. */
export type Classified = { kind: ProblemKind; detail: string; retryAfterSeconds?: number | undefined };

/** There is no verdict, for a reason that the caller may read. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly kind: ProblemKind;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: keyof typeof problemKinds, detail: string, options: { retryAfterSeconds?: number } = {}) {
    super(detail);
    this.kind = problemKinds[kind];
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
  if (error instanceof ForbiddenError) return { kind: problemKinds.forbidden, detail: error.message };
  if (error instanceof GasBudgetError) {
    const { message, retryAfterSeconds } = error;
    return { kind: problemKinds.gasBudget, detail: message, retryAfterSeconds };
  }
  if (error instanceof IdempotencyMismatchError)
    return { kind: problemKinds.idempotency, detail: error.message };
  if (error instanceof IdentifierReusedError) {
    return { kind: problemKinds.identifierReused, detail: error.message };
  }
  if (error instanceof UndeterminedError) return undetermined(error.message);
  switch (statusOf(error)) {
    case 413:
      return { kind: problemKinds.tooLarge, detail: problemDetails.tooLarge };
    case 415:
      return { kind: problemKinds.mediaType, detail: problemDetails.mediaType };
    case 400:
      return {
        kind: problemKinds.malformed,
        detail: problemDetails.malformed,
      };
    default:
      return undetermined(problemDetails.unforeseen);
  }
}

function undetermined(detail: string): Classified {
  return { kind: problemKinds.undetermined, detail, retryAfterSeconds: usualRetryAfterSeconds };
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error ? (error as FastifyError).statusCode : undefined;
}
