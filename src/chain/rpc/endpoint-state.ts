import type { Hex } from "../../protocol/hex.ts";

/**
 * Why an HTTP request to an endpoint gave nothing that could be used.
 *
 * - `timeout`: no answer in time
 * - `connection`: refused, reset, broken off, no such host, a bad certificate
 * - `http_3xx`, `http_4xx`, `http_5xx`: another status than 200
 * - `rate_limited`: HTTP 429, or one of the JSON-RPC errors that mean the same
 * - `refused`: one JSON-RPC error for all calls
 * - `too_large`: HTTP 413; says nothing of the endpoint's health
 * - `malformed`: not an answer to what was asked
 * - `wrong_chain`: it serves another chain than the network's
 * - `lagging`: its newest block is too far behind the newest that any endpoint showed
 */
export type EndpointError =
  | "timeout"
  | "connection"
  | `http_${3 | 4 | 5}xx`
  | "rate_limited"
  | "refused"
  | "too_large"
  | "malformed"
  | "wrong_chain"
  | "lagging";

/**
 * How an endpoint is.
 *
 * | state | meaning | asked |
 * |---|---|---|
 * | untried | nothing came back from it yet | by its place in the order |
 * | healthy | its last answer was good | by its place in the order |
 * | slow | its answers take several times as long as another's | after all of those |
 * | lagging | it is blocks behind | last; its answers count only once it has caught up |
 * | failing | its last request failed | last |
 * | rate_limited | it wants fewer requests | last, and not before the time it named |
 * | wrong_chain | it serves another chain | never, until a probe finds it on the right one |
 */
export type EndpointHealth =
  | "untried"
  | "healthy"
  | "slow"
  | "lagging"
  | "failing"
  | "rate_limited"
  | "wrong_chain";

/** The purpose of a request to an endpoint: reads, a broadcast, or a health check. */
export type Purpose = "read" | "send" | "probe";

/** A call as observers see it; `about` is that of `RpcCall`. */
export type ObservedCall = { readonly method: string; readonly about?: Hex | undefined };

/** One HTTP request to an endpoint, once it is over. */
export type RpcExchange = {
  /** Its place in the configuration: "1" is the most preferred. */
  endpoint: string;
  purpose: Purpose;
  /** Of the calls of the batch, in order. */
  methods: readonly string[];
  /** The same by who asked: the calls of one `ask` or `send` each. */
  questions: readonly (readonly ObservedCall[])[];
  durationMs: number;
  /** Undefined when the answer was used. */
  error: EndpointError | undefined;
};

/** Called as it happens, for histograms and logs. Must not throw. */
export type RpcObserver = { exchanged?(exchange: RpcExchange): void };

/** Why a request to an endpoint gave nothing usable. Its message names no address: RPC URLs hold API keys. */
export class EndpointFailure {
  readonly kind: EndpointError;
  readonly message: string;
  /** How long the endpoint asked to be left alone, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: EndpointError, message: string, retryAfterMs?: number | undefined) {
    this.kind = kind;
    this.message = message;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The remembered facts about an endpoint, to decide when it is asked. Times are milliseconds of one clock. */
export type EndpointState = {
  readonly health: EndpointHealth;
  /** The problem, in a few words without secrets; undefined while nothing worse is than that it is slow. */
  readonly detail: string | undefined;
  /** When it is worth asking again whether it has recovered. */
  readonly pausedUntil: number;
  /** When it failed last; lagging is no failure. */
  readonly failedAt: number;
  /** Until when it asked to be left alone. Never further away than the longest pause. */
  readonly retryAt: number;
  /** A request sent at `sentAt` was answered well. */
  passed(sentAt: number): void;
  /** A request sent at `sentAt` was not. */
  failed(failure: EndpointFailure, sentAt: number): void;
  /** Notes whether it is slow. */
  setSlow(slow: boolean): void;
};

export type EndpointStateOptions = {
  now: () => number;
  /** The pause after a failure; it doubles with each one that follows. */
  firstPauseMs: number;
  /** The longest pause, whatever the endpoint asks for. */
  longestPauseMs: number;
};

/**
 * The health of one endpoint ({@link EndpointHealth} has the table of states).
 *
 * One good answer brings it back. The pause that its next failure costs shrinks only after it has been well for as
 * long as the longest pause: an endpoint that answers probes and fails at everything else is soon left alone.
 */
export function createEndpointState(options: EndpointStateOptions): EndpointState {
  const { now, firstPauseMs, longestPauseMs } = options;
  let trouble: Exclude<EndpointHealth, "untried" | "healthy" | "slow"> | undefined;
  let tried = false;
  let isSlow = false;
  let detail: string | undefined;
  let since = now();
  let recoveredAt = now();
  let failures = 0;
  let pausedUntil = 0;
  let failedAt = Number.NEGATIVE_INFINITY;
  let retryAt = 0;

  function health(): EndpointHealth {
    if (trouble !== undefined) return trouble;
    if (!tried) return "untried";
    return isSlow ? "slow" : "healthy";
  }

  /** Makes a change, and notes when the health became another one. */
  function change(make: () => void): void {
    const before = health();
    make();
    if (health() !== before) since = now();
  }

  return {
    get health() {
      return health();
    },
    get detail() {
      return trouble === undefined ? undefined : detail;
    },
    get pausedUntil() {
      return pausedUntil;
    },
    get failedAt() {
      return failedAt;
    },
    get retryAt() {
      return retryAt;
    },

    passed(sentAt) {
      if (tried && trouble === undefined) return;
      // A request that was under way when the trouble began says nothing about its end.
      if (trouble !== undefined && sentAt < since) return;
      if (trouble !== undefined) recoveredAt = now();
      change(() => {
        tried = true;
        trouble = undefined;
        pausedUntil = 0;
        retryAt = 0;
      });
    },

    failed({ kind, message, retryAfterMs }, sentAt) {
      const time = now();
      // What was under way before it recovered says nothing of what came after.
      if (trouble === undefined && sentAt < recoveredAt) return;
      if (trouble === undefined && time - recoveredAt >= longestPauseMs) failures = 0;
      change(() => {
        const hasOwnState = kind === "lagging" || kind === "rate_limited" || kind === "wrong_chain";
        trouble = hasOwnState ? kind : "failing";
        detail = message;
      });
      // Nothing is wrong with one that lags: it is asked how far it is at the usual pace.
      if (kind === "lagging") return;
      failedAt = time;
      // Requests that fail together are one failure.
      if (time >= pausedUntil) pausedUntil = time + Math.min(firstPauseMs * 2 ** failures++, longestPauseMs);
      if (retryAfterMs === undefined) return;
      retryAt = Math.max(retryAt, time + Math.min(retryAfterMs, longestPauseMs));
      pausedUntil = Math.max(pausedUntil, retryAt);
    },

    setSlow(slow) {
      change(() => {
        isSlow = slow;
      });
    },
  };
}
