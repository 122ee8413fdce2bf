import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { ConnectionError, FastifyError } from "fastify";
import type { ServiceLog } from "../../../observe/log/logger.ts";
import {
  answerUnreadableRequest,
  type ProblemKind,
  problemDetails,
  problemKinds,
} from "../../../protocol/problems.ts";
import {
  ForbiddenError,
  GasBudgetError,
  IdempotencyMismatchError,
  IdentifierReusedError,
  UndeterminedError,
} from "../../../util/errors.ts";
import { afterWholeRequests } from "../connections/exchange.ts";
import { createTlsWarning } from "../connections/tls-hello.ts";

/** A problem as shown in the answer. */
export type Classified = { kind: ProblemKind; detail: string; retryAfterSeconds?: number | undefined };

/** A request without a verdict, for a reason that the caller may read. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly kind: ProblemKind;
  readonly retryAfterSeconds: number | undefined;
  /** Named as in Fastify's errors, for routes that answer in another format. */
  readonly statusCode: number;

  constructor(kind: keyof typeof problemKinds, detail: string, options: { retryAfterSeconds?: number } = {}) {
    super(detail);
    this.kind = problemKinds[kind];
    this.statusCode = this.kind.status;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Used if no better time is known. */
const usualRetryAfterSeconds = 1;

/**
 * Classifies an error as a problem. Unknown errors are "undetermined", and their text is not shown, since it may
 * contain hosts or internals.
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

/** Errors whose message is shown to the caller. */
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

/** How long a connection stays open after its last answer so that the peer can read it, in milliseconds. */
const lingerMs = 500;

/** Connections that were answered: the parser reports an error for every further byte. */
const answered = new WeakSet<Socket>();

/**
 * Makes the handler for input that is not HTTP, before there is a request: it answers 400, or 408 if it comes too
 * slowly, or 431 if the headers are too large. Complete requests before it on the connection are answered first; then
 * the connection is closed.
 */
export function createClientErrorHandler(log: ServiceLog): (error: ConnectionError, socket: Socket) => void {
  const warnOfTls = createTlsWarning(log);
  return (error, socket) => {
    if (error.code === "ECONNRESET" || answered.has(socket)) return;
    answered.add(socket);
    if (!warnOfTls(error))
      log.debug({ code: error.code }, "not answered: the request is not HTTP, too slow or too large");
    afterWholeRequests(socket, () => {
      if (!socket.writable) return;
      socket.end(answerUnreadableRequest(error.code, randomUUID()));
      // If destroyed at once with unread bytes of the peer, the connection would be reset before the answer is read.
      setTimeout(() => socket.destroy(), lingerMs).unref();
    });
  };
}
