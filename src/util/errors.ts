import type { ErrorCode } from "./error-codes.ts";

/** The system's codes for an address that does not answer. */
const unreachable = /^E(CONN(REFUSED|RESET)|(HOST|NET)UNREACH|NOTFOUND|AI_AGAIN|TIMEDOUT)$/;

/**
 * The root of every error this project throws. `message` is one sentence for the caller; `hints` are lines for the
 * operator on how to fix it; `cause` is always the underlying error; `code` stays the same when a message changes.
 */
export class KitError extends Error {
  override readonly name: string = "KitError";
  /** By default that of the cause, or derived from the system's code. */
  readonly code: ErrorCode;
  readonly hints: readonly string[];

  constructor(
    message: string,
    { cause, code, hints = [] }: { cause?: unknown; code?: ErrorCode; hints?: readonly string[] } = {},
  ) {
    super(message, { cause });
    this.code = code ?? codeOf(cause);
    this.hints = hints;
  }

  /** Vitest prints only `message` of this object and no other field of an error, so it includes the hints. */
  toJSON(): { name: string; code: ErrorCode; message: string; hints: readonly string[] } {
    const { name, code, message, hints } = this;
    return { name, code, message: [message, ...hints].join("\n  "), hints };
  }
}

function codeOf(error: unknown): ErrorCode {
  let cause = error;
  // Bounded, since an error may be its own cause.
  for (let depth = 0; cause instanceof Error && depth < 9; depth++) {
    if (cause instanceof KitError) return cause.code;
    const code = `${Reflect.get(cause, "code")}`;
    if (code === "ENOENT") return "not-found";
    if (code === "EADDRINUSE") return "port-in-use";
    if (unreachable.test(code)) return "unreachable";
    cause = cause.cause;
  }
  return "failed";
}

/** One problem with a configuration or a command line. */
export type ConfigurationProblem = {
  /** The variable or option as the user writes it: `BASE_RPC_URL`, `--port`. */
  name: string;
  problem: string;
  /** A value that would work. */
  example?: string;
  /** True if there is no value at all, as opposed to a wrong one. */
  isMissing?: boolean;
};

/** A configuration that cannot work, with all of its problems at once. */
export class ConfigurationError extends KitError {
  override readonly name = "ConfigurationError";
  override readonly code = "configuration";
  readonly problems: readonly ConfigurationProblem[];

  constructor(problems: readonly ConfigurationProblem[]) {
    super(
      problems
        .map(
          ({ name, problem, example }) => `${name}: ${problem}${example ? ` (for example ${example})` : ""}`,
        )
        .join("\n"),
    );
    this.problems = problems;
  }
}

/**
 * Returns the result of `work`; undefined if it throws a {@link ConfigurationError}, whose problems are added to `problems`.
 */
export function collectProblems<T>(problems: ConfigurationProblem[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

/**
 * "We could not tell": the RPC is down, the operator has no gas money, or anything unforeseen. It never becomes a
 * verdict; over HTTP it is a 503, and the request may be retried.
 */
export class UndeterminedError extends KitError {
  override readonly name: string = "UndeterminedError";
  override readonly code: ErrorCode = "undetermined";
}

/**
 * One operator cannot settle: it lacks gas money or its role. Nothing was signed, and another operator may settle the
 * same payment.
 */
export class OperatorError extends UndeterminedError {
  override readonly name = "OperatorError";
  override readonly code = "operator-unable";
  /** The problem with the operator, in a few words. */
  readonly problem: string;

  constructor(problem: string, options: { hints: readonly string[] }) {
    super("The facilitator cannot settle at the moment; nothing was sent, try again later", options);
    this.problem = problem;
  }
}

/** The key is valid, but lacks what the call needs: a scope, or a recipient for the network. HTTP 403. */
export class ForbiddenError extends KitError {
  override readonly name = "ForbiddenError";
  override readonly code = "forbidden";
}

/**
 * The organization's daily gas budget does not cover another settlement. The payment may be fine; nothing was signed
 * for it. HTTP 429.
 */
export class GasBudgetError extends KitError {
  override readonly name = "GasBudgetError";
  override readonly code = "gas-budget-used-up";
  /** Seconds until a retry may succeed. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A payment's identifier was used for another payment before. HTTP 409. */
export class IdentifierReusedError extends KitError {
  override readonly name = "IdentifierReusedError";
  override readonly code = "payment-identifier-reused";
}

/** An `Idempotency-Key` was sent again with another body. HTTP 422. */
export class IdempotencyMismatchError extends KitError {
  override readonly name = "IdempotencyMismatchError";
  override readonly code = "idempotency-key-reused";
}
