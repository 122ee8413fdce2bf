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

/** The logger interface for the parts of the service. */
export type ServiceLog = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/** Gives further fields of a line, by its own fields and by the id of its request. */
export type FieldsBeside = (fields: object, requestId: () => unknown) => object;

/**
 * The service's logger: JSON lines without keys, signatures or RPC URLs, on stderr, so that stdout stays free for what commands
 * print. Headers and bodies are never logged; errors are reduced to names, codes, messages and hints, and a stack where they may be
 * bugs: "we could not tell" is foreseen. Since libraries put into their messages what they were given, every URL in them is cut to
 * its host-free scheme (RPC URLs carry provider keys), every API key to its id, and every hex string that is longer than a hash,
 * such as a signature or a signed transaction, to its beginning.
 */
export function createLogger(
  level: string,
  stream: DestinationStream = destination(2),
  fieldsBeside?: FieldsBeside,
): Logger {
  const serializers = { err: (error: unknown) => describeError(error) };
  // JSON escapes the C0 characters alone, and the lines may be read at a terminal.
  const hooks = { streamWrite: escapeControlsInText };
  if (fieldsBeside === undefined) return pino({ level, serializers, hooks }, stream);
  const mixin = (fields: object, _level: number, line: Logger) =>
    fieldsBeside(fields, () => line.bindings().reqId);
  return pino({ level, serializers, hooks, mixin }, stream);
}

/** Returns true if a line of this level would be written; if not, its fields need not be computed. */
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
  /** The parts of an AggregateError, which says nothing itself. */
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

/** Anything may be thrown, even an object that cannot be converted to a string. */
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
