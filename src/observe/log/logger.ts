import {
  type BaseLogger,
  type DestinationStream,
  destination,
  type Level,
  type Logger,
  levels,
  pino,
} from "pino";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { escapeControlsInText } from "../../util/text.ts";

/** The logger interface used by the parts of the service. */
export type ServiceLog = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/** Returns extra fields for a log line, given its own fields and a getter for its request id. */
export type FieldsBeside = (fields: object, requestId: () => unknown) => object;

/**
 * The service's logger: JSON lines on stderr, so that stdout stays free for command output. Keys, signatures, RPC
 * URLs, headers and bodies are never logged. Errors are reduced to name, code, message and hints, plus a stack if
 * they may be bugs; an `UndeterminedError` is expected and gets none. Libraries quote their inputs in messages, so
 * every URL is cut to its scheme (RPC URLs carry provider keys), every API key to its id, and every hex string longer
 * than a hash (a signature, a signed transaction) to its first digits.
 */
export function createLogger(
  level: string,
  stream: DestinationStream = destination(2),
  fieldsBeside?: FieldsBeside,
): Logger {
  const serializers = { err: (error: unknown) => describeError(error) };
  // JSON escapes only the C0 control characters, and the lines may be read in a terminal.
  const hooks = { streamWrite: escapeControlsInText };
  if (fieldsBeside === undefined) return pino({ level, serializers, hooks }, stream);
  const mixin = (fields: object, _level: number, line: Logger) =>
    fieldsBeside(fields, () => line.bindings().reqId);
  return pino({ level, serializers, hooks, mixin }, stream);
}

/** True if a line of this level would be written; if not, its fields need not be computed. */
export function wouldLog(log: { level: string }, level: Level): boolean {
  return (levels.values[log.level] ?? Number.POSITIVE_INFINITY) <= (levels.values[level] ?? 0);
}

type DescribedError = {
  type: string;
  message: string;
  code?: string;
  hints?: readonly string[];
  stack?: string;
  cause?: DescribedError;
  /** The errors of an AggregateError, which has no message of its own. */
  errors?: readonly DescribedError[];
};

/** Deeper causes add nothing, and an error may be its own cause. */
const deepest = 8;

function describeError(error: unknown, depth = 0, foreseen = false): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutSecrets(textOf(error)) };
  const isForeseen = foreseen || error instanceof UndeterminedError;
  const hints = error instanceof KitError ? error.hints : [];
  const parts = error instanceof AggregateError && depth < deepest ? error.errors : [];
  return {
    type: error.name,
    message: withoutSecrets(error.message),
    ...("code" in error && typeof error.code === "string" && { code: error.code }),
    ...(hints.length > 0 && { hints: hints.map(withoutSecrets) }),
    ...(error.stack !== undefined && !isForeseen && { stack: withoutSecrets(error.stack) }),
    ...(error.cause !== undefined &&
      depth < deepest && { cause: describeError(error.cause, depth + 1, isForeseen) }),
    ...(parts.length > 0 && {
      errors: parts.map((part: unknown) => describeError(part, depth + 1, isForeseen)),
    }),
  };
}

/** Anything can be thrown, even an object that cannot be converted to a string. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return "something that cannot be shown";
  }
}

function withoutSecrets(text: string): string {
  return text
    .replace(/\b(https?|wss?|postgres(?:ql)?):\/\/[^\s"')]+/g, "$1://…")
    .replace(/\bx4k_([0-9A-Za-z]{1,32})_[0-9A-Za-z]+/g, "x4k_$1_…")
    .replace(/\b(0x[0-9a-fA-F]{8})[0-9a-fA-F]{57,}/g, "$1…");
}
