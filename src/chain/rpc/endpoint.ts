import { createKeepAlivePost, HttpFailure, type Post } from "../../util/http-client.ts";
import { chainIdCall, type Head, headCall, readHead, readSafeInteger } from "./calls.ts";
import {
  createEndpointState,
  type EndpointError,
  EndpointFailure,
  type EndpointState,
  type Purpose,
  type RpcObserver,
} from "./endpoint-state.ts";
import {
  BatchRefused,
  describeError,
  type EndpointAnswer,
  type Question,
  type RpcCall,
  readBatch,
  writeBatch,
} from "./rpc.ts";

/** The answers to the calls of one batch. */
export type Answers = ReadonlyMap<RpcCall, EndpointAnswer>;

/** The order in which endpoints are asked, lowest first. */
const ranks = { well: 0, slow: 1, unwell: 2, rateLimited: 3 } as const;

/** One URL of a network: sends requests to it, checks its responses and tracks its state. */
export type Endpoint = {
  readonly label: string;
  readonly state: EndpointState;
  /** Lower ranks are asked first. Undefined if it must not be asked. */
  readonly rank: number | undefined;
  /** The milliseconds left of the pause it asked for; 0 or less if there is none. */
  readonly retryAfterMs: number;
  /** Never throws; `timeoutMs` shortens the usual timeout. */
  read(
    purpose: "read" | "probe",
    questions: readonly Question[],
    timeoutMs?: number,
  ): Promise<Answers | EndpointFailure>;
  /** Sends the batches one by one; returns undefined if all of them were answered. Never throws. */
  send(batches: readonly Question[], timeoutMs?: number): Promise<EndpointFailure | undefined>;
  /** Ends running requests and closes all connections. */
  close(): void;
};

export type EndpointOptions = {
  label: string;
  url: URL;
  timeoutMs: number;
  firstPauseMs: number;
  longestPauseMs: number;
  now: () => number;
  /** Removes secrets from a provider's error texts. */
  redact: (text: string) => string;
  /** The checks of its responses; undefined for a network's only endpoint. */
  expected: { chainId: number; maxLagBlocks: bigint; highest: HighestHead } | undefined;
  observer: RpcObserver;
  onFailure: (endpoint: Endpoint) => void;
};

/** The highest block seen at any endpoint of a network; responses must not fall far behind it. */
export type HighestHead = {
  /** Undefined if none has been seen yet, or only long ago. */
  number(): bigint | undefined;
  saw(number: bigint): void;
};

/** The number of calls added to a batch to check the response: the newest block and the chain id. */
export const extraCalls = 2;

const maxResponseBytes = 10_485_760;

/**
 * JSON-RPC codes for "too many requests", which providers return for single calls of a batch: EIP-1474, Alchemy (the
 * HTTP status), QuickNode.
 */
const rateLimitCodes: ReadonlySet<number | undefined> = new Set([-32005, 429, -32007]);

/** The error code for a call that is too large by itself, taken from HTTP. No node uses it. */
const tooLargeCode = 413;

/** Returns true if an endpoint is healthy, or at worst slow. */
export function isUsable({ rank }: Endpoint): boolean {
  return rank !== undefined && rank <= ranks.slow;
}

/**
 * Creates an endpoint. If there are several, every read also requests the newest block, and counts only if that is not
 * far behind the highest block seen before the request was sent. Until the endpoint has returned the right chain id,
 * that is requested too.
 */
export function createEndpoint(options: EndpointOptions): Endpoint {
  const { label, url, now, redact, expected, observer, onFailure } = options;
  const post = createKeepAlivePost(url, { timeoutMs: options.timeoutMs, maxResponseBytes });
  const state = createEndpointState(options);
  let chainId: number | undefined;
  let closed = false;
  const closure = new EndpointFailure("connection", "closed");

  /** Makes one HTTP request. Fails unless every call is answered in time and `check` finds no problem. */
  async function exchangeOnce(
    calls: readonly RpcCall[],
    questions: readonly Question[],
    { purpose, timeoutMs, check }: ExchangeOptions,
  ): Promise<Answers | EndpointFailure> {
    if (closed) return closure;
    const sentAt = now();
    const answers = await request(post, calls, { label, redact, timeoutMs });
    const durationMs = now() - sentAt;
    const failure = answers instanceof EndpointFailure ? answers : check?.(answers);
    const methods = calls.map(({ method }) => method);
    observer.exchanged?.({ endpoint: label, purpose, methods, questions, durationMs, error: failure?.kind });
    if (failure === undefined) return answers;
    if (closed) return closure;
    // The size of a request is unrelated to the endpoint's health.
    if (failure.kind === "too_large") return failure;
    state.failed(failure, sentAt);
    onFailure(endpoint);
    return failure;
  }

  /** Returns the calls of all questions, each once, after those that check the response. */
  function callsOf(questions: readonly Question[]): readonly RpcCall[] {
    // The checks come first, so that they are answered first if a batch must be split.
    const checks = chainId === expected?.chainId ? [headCall] : [chainIdCall, headCall];
    return [...new Set([...(expected === undefined ? [] : checks), ...questions.flat()])];
  }

  /** Returns the problem with a response, if any; `floor` is the highest block known when the request was sent. */
  function check(answers: Answers, floor: bigint | undefined): EndpointFailure | undefined {
    chainId = readSafeInteger(answers.get(chainIdCall)?.result) ?? chainId;
    const newest = readHead(answers.get(headCall)?.result);
    return expected && judge(answers, { chainId, newest, floor, expected });
  }

  const endpoint: Endpoint = {
    label,
    state,

    get rank() {
      if (state.health === "untried" || state.health === "healthy") return ranks.well;
      if (state.health === "slow") return ranks.slow;
      if (state.health === "wrong_chain") return undefined;
      return state.retryAt > now() ? ranks.rateLimited : ranks.unwell;
    },

    get retryAfterMs() {
      return state.retryAt - now();
    },

    async read(purpose, questions, timeoutMs) {
      const sentAt = now();
      // Taken before the request: blocks that others show meanwhile do not count against it.
      const floor = expected?.highest.number();
      const answers = await exchange(exchangeOnce, label, callsOf(questions), questions, {
        purpose,
        timeoutMs,
        check: (got) => check(got, floor),
      });
      if (!(answers instanceof EndpointFailure)) state.passed(sentAt);
      return answers;
    },

    async send(batches, timeoutMs) {
      let tooLarge: EndpointFailure | undefined;
      for (const batch of batches) {
        const options: ExchangeOptions = { purpose: "send", timeoutMs };
        const answers = await exchange(exchangeOnce, label, batch, [batch], options);
        if (answers instanceof EndpointFailure) return answers;
        // Another endpoint may accept what is too large for this one; the rest has arrived.
        const refused = [...answers.values()].find(({ error }) => error?.code === tooLargeCode);
        if (refused?.error !== undefined) tooLarge = new EndpointFailure("too_large", refused.error.message);
      }
      return tooLarge;
    },

    close() {
      closed = true;
      post.close();
    },
  };
  return endpoint;
}

type ExchangeOptions = {
  purpose: Purpose;
  timeoutMs: number | undefined;
  /** Returns the problem with a complete response, if any. */
  check?: (answers: Answers) => EndpointFailure | undefined;
};

type ExchangeOnce = (
  calls: readonly RpcCall[],
  questions: readonly Question[],
  options: ExchangeOptions,
) => Promise<Answers | EndpointFailure>;

/**
 * Sends calls in one HTTP request, or in several if the endpoint finds it too large (HTTP 413): the calls of a batch
 * belong to different callers, and the size of one must not fail the others. A single call that is too large gets an
 * error of its own.
 */
async function exchange(
  exchangeOnce: ExchangeOnce,
  label: string,
  calls: readonly RpcCall[],
  questions: readonly Question[],
  options: ExchangeOptions,
): Promise<Answers | EndpointFailure> {
  const answers = await exchangeOnce(calls, questions, options);
  if (!(answers instanceof EndpointFailure) || answers.kind !== "too_large") return answers;
  const [only, ...others] = calls;
  if (only !== undefined && others.length === 0) {
    const error = { code: tooLargeCode, message: answers.message, data: undefined };
    return new Map([[only, { error, endpoint: label }]]);
  }
  const half = Math.ceil(calls.length / 2);
  const exchangePart = (part: readonly RpcCall[]) => {
    const asked = questions.map((question) => question.filter((call) => part.includes(call)));
    return exchange(exchangeOnce, label, part, asked, options);
  };
  const first = await exchangePart(calls.slice(0, half));
  if (first instanceof EndpointFailure) return first;
  const second = await exchangePart(calls.slice(half));
  return second instanceof EndpointFailure ? second : new Map([...first, ...second]);
}

async function request(
  post: Post,
  calls: readonly RpcCall[],
  about: { label: string; redact: (text: string) => string; timeoutMs: number | undefined },
): Promise<Answers | EndpointFailure> {
  const { label, redact, timeoutMs } = about;
  try {
    const { body, firstId } = writeBatch(calls);
    const answers = readBatch(await post(body, timeoutMs), firstId, calls, label);
    for (const { error } of answers.values()) {
      if (error !== undefined) error.message = redact(error.message);
    }
    return findRateLimit(answers) ?? answers;
  } catch (error) {
    const { kind, retryAfterMs } = classify(error);
    return new EndpointFailure(
      kind,
      redact(error instanceof Error ? error.message : String(error)),
      retryAfterMs,
    );
  }
}

/** Returns the problem with the chain that a response shows, if any. */
function judge(
  answers: Answers,
  about: {
    chainId: number | undefined;
    newest: Head | undefined;
    floor: bigint | undefined;
    expected: NonNullable<EndpointOptions["expected"]>;
  },
): EndpointFailure | undefined {
  const { chainId, newest, floor, expected } = about;
  if (chainId === undefined) {
    return answers.has(chainIdCall)
      ? new EndpointFailure("malformed", "does not say which chain it serves")
      : undefined;
  }
  if (chainId !== expected.chainId) {
    return new EndpointFailure("wrong_chain", `serves chain ${chainId}, not ${expected.chainId}`);
  }
  // A node between two blocks may not know its newest one; its other answers are fine.
  if (newest === undefined) return undefined;
  const behind = (floor ?? newest.number) - newest.number;
  if (behind > expected.maxLagBlocks) {
    return new EndpointFailure("lagging", `is ${behind} blocks behind, at ${newest.number}`);
  }
  expected.highest.saw(newest.number);
  return undefined;
}

/** A single rate-limited call fails the whole batch. */
function findRateLimit(answers: Answers): EndpointFailure | undefined {
  for (const [{ method }, { error }] of answers) {
    if (error === undefined || !rateLimitCodes.has(error.code)) continue;
    // For eth_getLogs, -32005 can also mean that there are too many logs.
    if (method !== "eth_getLogs") return new EndpointFailure("rate_limited", describeError(error));
  }
  return undefined;
}

function classify(error: unknown): { kind: EndpointError; retryAfterMs?: number | undefined } {
  if (error instanceof BatchRefused) {
    return { kind: rateLimitCodes.has(error.error.code) ? "rate_limited" : "refused" };
  }
  if (!(error instanceof HttpFailure)) return { kind: "malformed" };
  const { kind, status = 0, retryAfterMs } = error;
  if (kind === "timeout" || kind === "connection") return { kind };
  if (status === 429) return { kind: "rate_limited", retryAfterMs };
  if (status === 413) return { kind: "too_large" };
  if (status >= 500) return { kind: "http_5xx", retryAfterMs };
  if (status >= 400) return { kind: "http_4xx", retryAfterMs };
  return { kind: status >= 300 ? "http_3xx" : "malformed", retryAfterMs };
}
