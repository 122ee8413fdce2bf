import {
  type BaseLogger,
  type DestinationStream,
  destination,
  type Level,
  type Logger,
  levels,
  pino,
} from "pino";
import { KitError } from "../errors/base.ts";

/** What the parts of the service need of a logger. */
export type Log = Pick<BaseLogger, "debug" | "info" | "warn" | "error">;

/**
 * The service's logger: JSON lines without keys, signatures or RPC URLs. Headers and bodies are never logged; errors
 * are reduced to names, messages and hints, in which every URL is cut to its host-free scheme, because RPC URLs carry
 * provider keys and libraries put them into their messages.
 *
 * Writes to stderr, so that stdout stays free for what commands print.
 */
export function createLogger(level: string, stream: DestinationStream = destination(2)): Logger {
  return pino({ level, serializers: { err: describeError } }, stream);
}

/** Whether a line of this level would be written: what is only there to be logged need not be computed otherwise. */
export function wouldLog(log: { level: string }, level: Level): boolean {
  return (levels.values[log.level] ?? Number.POSITIVE_INFINITY) <= (levels.values[level] ?? 0);
}

type DescribedError = {
  type: string;
  message: string;
  hints?: readonly string[];
  stack?: string;
  cause?: DescribedError;
};

function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutUrls(String(error)) };
  return {
    type: error.name,
    message: withoutUrls(error.message),
    ...(error instanceof KitError && error.hints.length > 0 ? { hints: error.hints.map(withoutUrls) } : {}),
    ...(error.stack === undefined ? {} : { stack: withoutUrls(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}

function withoutUrls(text: string): string {
  return text.replace(/\b(https?|wss?|postgres(?:ql)?):\/\/[^\s"')]+/g, "$1://…");
}
