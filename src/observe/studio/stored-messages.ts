import type { Hex } from "../../protocol/hex.ts";
import type {
  ChecksBegun,
  PaymentOutcome,
  RequestEnded,
  RequestRead,
  RequestResult,
} from "../channels/channels.ts";
import type { NodeCall, PaymentMessage } from "./payment-message.ts";

/** A verify or settle that has not ended, and what was published about it. */
export type OpenRequest = Pick<RequestRead, "requestId" | "operation" | "payment"> & {
  readonly at: number;
  checks: Pick<ChecksBegun, "checks" | "times"> | undefined;
  calls: readonly TimedCall[];
  /** The request of the same payment that was read before, and is open too. */
  before: OpenRequest | undefined;
};

/** Calls to a node for one payment, in one HTTP request; payments that were asked for together share it. */
export type TimedCall = NodeCall & { readonly at: number };

/**
 * The same when it has ended, in four objects: each that stays in memory costs a garbage collector as much as many that do
 * not. The rest are shared.
 */
export type EndedRequest = Pick<RequestRead, "requestId" | "operation"> & {
  /** The request of the same payment that ended before. */
  before: EndedRequest | undefined;
  readonly checks: ChecksBegun["checks"] | undefined;
  readonly calls: readonly TimedCall[];
  readonly status: number;
  readonly answer: string | undefined;
  readonly result: RequestResult;
  /** When it was read, when it ended, how many milliseconds it took; and when each of the checks was made. */
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
  if (passed.length < mostLists && list.flat().every(({ refusal }) => refusal === undefined)) {
    passed.push(list);
  }
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

/** A message, and when it was published. */
export type TimedMessage = { readonly message: PaymentMessage; readonly at: number };

/** What was published about a request. */
export function openMessages({
  requestId,
  operation,
  at,
  checks,
  calls,
}: Omit<OpenRequest, "payment" | "before">): TimedMessage[] {
  const made = checks && { requestId, checks: checks.checks, times: checks.times };
  return [
    { message: { requestId, operation }, at },
    ...(made === undefined ? [] : [{ message: made, at: made.times[0] ?? at }]),
    ...calls.map(({ at: calledAt, ...message }) => ({ message, at: calledAt })),
  ];
}

/** How many of them there were. */
export function countMessages({ checks, calls }: Pick<EndedRequest, "checks" | "calls">): number {
  return (checks === undefined ? 2 : 3) + calls.length;
}

/** When it ended. */
export function endedAt({ numbers: [, at = 0] }: EndedRequest): number {
  return at;
}

/** The same of a request that has ended. */
export function endedMessages(ended: EndedRequest): TimedMessage[] {
  const { requestId, operation, checks, calls, status, answer, result, numbers } = ended;
  const [at = 0, endedAt = 0, tookMs = 0, ...times] = numbers;
  const message = { requestId, operation, status, answer, result, tookMs };
  return [
    ...openMessages({ requestId, operation, at, checks: checks && { checks, times }, calls }),
    { message, at: endedAt },
  ];
}

/** What was published about a transaction, once for all payments that it carries. */
export class KeptTransaction {
  /** Its hash and its txNonce. */
  readonly keys: readonly [Hex, string];
  /** The payments that it carries, by their ids. */
  readonly ids: readonly Hex[];
  readonly #messages: TimedMessage[] = [];
  /** How many messages there were before these. */
  omitted = 0;
  /** How many of them are kept. */
  payments = 0;

  constructor(keys: readonly [Hex, string], ids: readonly Hex[]) {
    this.keys = keys;
    this.ids = ids;
  }

  get kept(): number {
    return this.#messages.length;
  }

  /** What was published about it, in order. */
  told(): readonly TimedMessage[] {
    return this.#messages;
  }

  /** When the newest of that was published. */
  get changedAt(): number {
    return this.#messages.at(-1)?.at ?? 0;
  }

  keep(message: PaymentMessage, at: number): void {
    this.#messages.push({ message, at });
  }

  /** A node was asked about it. */
  call([call]: readonly [TimedCall]): void {
    this.keep(call, call.at);
  }

  /** Forgets the first so many messages. Gives how many there were. */
  forget(count: number): number {
    const forgotten = this.#messages.splice(0, count).length;
    this.omitted += forgotten;
    return forgotten;
  }
}
