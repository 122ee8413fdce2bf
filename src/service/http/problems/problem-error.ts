import type { FastifyError } from "fastify";
import { type ProblemKind, problemDetails, problemKinds } from "../../../protocol/problems.ts";
import {
  ForbiddenError,
  GasBudgetError,
  IdempotencyMismatchError,
  IdentifierReusedError,
  UndeterminedError,
} from "../../../util/errors.ts";

/** A problem as the answer shows it. */
export type Classified = { kind: ProblemKind; detail: string; retryAfterSeconds?: number | undefined };

/** There is no verdict, for a reason that the caller may read. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly kind: ProblemKind;
  readonly retryAfterSeconds: number | undefined;
  /** As errors of Fastify have it, for routes that answer in another form. */
  readonly statusCode: number;

  constructor(kind: keyof typeof problemKinds, detail: string, options: { retryAfterSeconds?: number } = {}) {
    super(detail);
    this.kind = problemKinds[kind];
    this.statusCode = this.kind.status;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Where no better time is known. */
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
  const foreseen = foreseenErrors.find(([type]) => error instanceof type);
  if (foreseen !== undefined && error instanceof Error) {
    const retryAfterSeconds = error instanceof GasBudgetError ? error.retryAfterSeconds : undefined;
    return { kind: problemKinds[foreseen[1]], detail: error.message, retryAfterSeconds };
  }
  if (error instanceof UndeterminedError) return undetermined(error.message);
  switch (statusOf(error)) {
    case 413:
      return { kind: problemKinds.tooLarge, detail: problemDetails.tooLarge };
    case 415:
      return { kind: problemKinds.mediaType, detail: problemDetails.mediaType };
    case 400:
      return { kind: problemKinds.malformed, detail: problemDetails.malformed };
    default:
      return undetermined("An unexpected error kept the service from a verdict; try again");
  }
}

/** Errors whose message is for the caller. */
const foreseenErrors = [
  [ForbiddenError, "forbidden"],
  [GasBudgetError, "gasBudget"],
  [IdempotencyMismatchError, "idempotency"],
  [IdentifierReusedError, "identifierReused"],
] as const;

function undetermined(detail: string): Classified {
  return { kind: problemKinds.undetermined, detail, retryAfterSeconds: usualRetryAfterSeconds };
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error ? (error as FastifyError).statusCode : undefined;
}
