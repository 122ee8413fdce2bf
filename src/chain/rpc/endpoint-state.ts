import type { Hex } from "../../protocol/hex.ts";

/**
 * Why an HTTP request to an endpoint failed.
 *
 * - `timeout`: no response in time
 * - `connection`: refused, reset, closed early, unknown host, or a bad certificate
 * - `http_3xx`, `http_4xx`, `http_5xx`: a status other than 200
 * - `rate_limited`: HTTP 429, or an equivalent JSON-RPC error
 * - `refused`: one JSON-RPC error for all calls
 * - `too_large`: HTTP 413; unrelated to the endpoint's health
 * - `malformed`: not a response to the request
 * - `wrong_chain`: it serves another chain than the network's
 * - `lagging`: its newest block is too far behind the newest seen at any endpoint
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
 * The health of an endpoint.
 *
 * | state | meaning | asked |
 * |---|---|---|
 * | untried | no response yet | by its position in the order |
 * | healthy | its last response was good | by its position in the order |
 * | slow | its responses take several times as long as another's | after all of those |
 * | lagging | it is blocks behind | last; its answers count only once it has caught up |
 * | failing | its last request failed | last |
 * | rate_limited | it demands fewer requests | last, and not before the time it named |
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

/** A call as observers see it; for `about`, see `RpcCall`. */
export type ObservedCall = { readonly method: string; readonly about?: Hex | undefined };

/** A finished HTTP request to an endpoint. */
export type RpcExchange = {
  /** Its position in the configuration; "1" is the most preferred. */
  endpoint: string;
  purpose: Purpose;
  /** The methods of the calls in the batch, in order. */
  methods: readonly string[];
  /** The calls grouped by `ask` or `send`. */
  questions: readonly (readonly ObservedCall[])[];
  durationMs: number;
  /** Undefined if the response was used. */
  error: EndpointError | undefined;
};

/** Called for each request as it ends, for histograms and logs. Must not throw. */
export type RpcObserver = { exchanged?(exchange: RpcExchange): void };

/** Why a request to an endpoint failed. Its message contains no address, because RPC URLs hold API keys. */
export class EndpointFailure {
  readonly kind: EndpointError;
  readonly message: string;
  /** How long the endpoint asked for a pause, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: EndpointError, message: string, retryAfterMs?: number | undefined) {
    this.kind = kind;
    this.message = message;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The facts about an endpoint that decide when it is asked. All times are milliseconds of one clock. */
export type EndpointState = {
  readonly health: EndpointHealth;
  /** The problem, in a few words without secrets; undefined if it is at worst slow. */
  readonly detail: string | undefined;
  /** When to check if it has recovered. */
  readonly pausedUntil: number;
  /** The time of the last failure; lagging does not count as one. */
  readonly failedAt: number;
  /** The end of the pause it asked for, limited to the longest pause. */
  readonly retryAt: number;
  /** Records a good response to a request sent at `sentAt`. */
  passed(sentAt: number): void;
  /** Records the failure of a request sent at `sentAt`. */
  failed(failure: EndpointFailure, sentAt: number): void;
  setSlow(slow: boolean): void;
};

export type EndpointStateOptions = {
  now: () => number;
  /** The pause after a failure; it doubles with each consecutive one. */
  firstPauseMs: number;
  /** The longest pause, whatever the endpoint asks for. */
  longestPauseMs: number;
};

/**
 * Creates the health state of one endpoint; see the table of states at {@link EndpointHealth}.
 *
 * One good response brings it back. The pause after its next failure only resets once it has been well for the longest
 * pause, so an endpoint that answers probes but fails at everything else is soon paused for long.
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

  /** Applies a change, and records the time if the health is different afterwards. */
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
      // A request that was already running when the trouble began does not show its end.
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
      // A request from before the recovery says nothing about the time after it.
      if (trouble === undefined && sentAt < recoveredAt) return;
      if (trouble === undefined && time - recoveredAt >= longestPauseMs) failures = 0;
      change(() => {
        const hasOwnState = kind === "lagging" || kind === "rate_limited" || kind === "wrong_chain";
        trouble = hasOwnState ? kind : "failing";
        detail = message;
      });
      // A lagging endpoint is not broken; it keeps being probed at the usual pace.
      if (kind === "lagging") return;
      failedAt = time;
      // Requests that fail together count as one failure.
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
