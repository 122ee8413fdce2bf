import type {
  ChecksBegun,
  PaymentOutcome,
  RequestEnded,
  RequestRead,
  RequestResult,
  RpcRequested,
} from "../channels/channels.ts";
import type { Hex } from "../protocol/hex.ts";
import type { PaymentMessage, TimedMessages } from "./payment-message.ts";

/** Calls to a node for one payment, in one HTTP request; payments that were asked for together share it. */
export type NodeCall = Pick<RpcRequested, "endpoint" | "durationMs" | "error"> & {
  readonly methods: readonly string[];
  readonly at: number;
};

/** A verify or settle that has not ended, and what was published about it. */
export type OpenRequest = Pick<RequestRead, "requestId" | "operation" | "payment"> & {
  readonly at: number;
  checks: Pick<ChecksBegun, "checks" | "times"> | undefined;
  calls: readonly NodeCall[];
};

/**
 * The same when it has ended, in four objects: each that stays in memory costs a garbage collector as much as many that do
 * not. The rest are shared.
 */
export type EndedRequest = Pick<RequestRead, "requestId" | "operation"> & {
  /** The request of the same payment that ended before. */
  before: EndedRequest | undefined;
  readonly checks: ChecksBegun["checks"] | undefined;
  readonly calls: readonly NodeCall[];
  readonly status: number;
  readonly answer: string | undefined;
  readonly result: RequestResult;
  /** When it was read, when it ended, how many milliseconds it took; and when each check was made. */
  readonly numbers: readonly number[];
};

/** What is kept of a request whose answer was written, with this status. */
export function endRequest(
  { requestId, operation, at, checks, calls }: OpenRequest,
  end: Pick<RequestEnded, "answer" | "result" | "tookMs"> & { status: number; at: number },
  before: EndedRequest | undefined,
): EndedRequest {
  const numbers = [at, end.at, end.tookMs];
  return {
    requestId,
    operation,
    before,
    checks: checks && sharedChecks(checks.checks),
    calls,
    status: end.status,
    answer: end.answer,
    result: sharedResult(end.result),
    numbers: checks === undefined ? numbers : numbers.concat(checks.times),
  };
}

/** Checks that all passed, which are in few orders. */
const passed: ChecksBegun["checks"][] = [];
const mostLists = 100;

function sharedChecks(checks: ChecksBegun["checks"]): ChecksBegun["checks"] {
  for (const list of passed) if (isSame(list, checks)) return list;
  // A copy: the list of a message may grow.
  const list = [...checks];
  if (passed.length < mostLists && list.flat().every(({ refusal }) => refusal === undefined))
    passed.push(list);
  return list;
}

function isSame(list: ChecksBegun["checks"], checks: ChecksBegun["checks"]): boolean {
  if (list.length !== checks.length) return false;
  for (let index = 0; index < list.length; index++) if (list[index] !== checks[index]) return false;
  return true;
}

/** Results that are nothing but an outcome. */
const outcomes = new Map<PaymentOutcome, RequestResult>();

function sharedResult(result: RequestResult): RequestResult {
  const { outcome, reason, message, transaction } = result;
  if (reason !== undefined || message !== undefined || transaction !== undefined) return result;
  const known = outcomes.get(outcome);
  if (known === undefined) outcomes.set(outcome, result);
  return known ?? result;
}

/** How many messages were published about a request. */
export function countMessages({
  checks,
  calls,
}: Pick<OpenRequest | EndedRequest, "checks" | "calls">): number {
  return (checks === undefined ? 1 : 2) + calls.length;
}

/** The messages, and when each was published. */
export function openMessages(
  id: Hex,
  { requestId, operation, at, checks, calls }: Omit<OpenRequest, "payment">,
): { messages: PaymentMessage[]; times: number[] } {
  const made = checks === undefined ? [] : [{ requestId, checks: checks.checks, times: checks.times }];
  const asked = calls.map(({ endpoint, methods, durationMs, error }) => ({
    ...{ endpoint, durationMs, error },
    about: new Map([[id, methods]]),
  }));
  return {
    messages: [{ requestId, operation }, ...made, ...asked],
    times: [at, ...made.map(({ times: [first = at] }) => first), ...calls.map((call) => call.at)],
  };
}

/** With the answer. */
export function endedMessages(id: Hex, ended: EndedRequest): TimedMessages {
  const { requestId, operation, checks, calls, status, answer, result, numbers } = ended;
  const [at = 0, endedAt = 0, tookMs = 0, ...times] = numbers;
  const open = { requestId, operation, at, checks: checks && { checks, times }, calls };
  const { messages, times: published } = openMessages(id, open);
  return {
    messages: [...messages, { requestId, operation, status, answer, result, tookMs }],
    times: [...published, endedAt],
  };
}
