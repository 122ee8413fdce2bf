import type { EndpointError, EndpointHealth } from "./rpc-status.ts";

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

/** What is remembered of an endpoint, to decide when it is asked. Times are milliseconds of one clock. */
export type EndpointState = {
  readonly health: EndpointHealth;
  /** What is wrong, in a few words; undefined while nothing is. */
  readonly detail: string | undefined;
  /** When the health became what it is. */
  readonly since: number;
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
  /** Notes that it is slow, with why, or that it is not. */
  setSlow(why: string | undefined): void;
};

export type EndpointStateOptions = {
  now: () => number;
  /** The pause after a failure; it doubles with each one that follows. */
  firstPauseMs: number;
  /** The longest pause, whatever the endpoint asks for. */
  longestPauseMs: number;
  changed: (from: EndpointHealth, state: EndpointState) => void;
};

/**
 * The health of one endpoint ({@link EndpointHealth} has the table of states).
 *
 * One good answer brings it back. The pause that its next failure costs shrinks only after it has been well for as
 * long as the longest pause: an endpoint that answers probes and fails at everything else is soon left alone.
 */
export function createEndpointState(options: EndpointStateOptions): EndpointState {
  const { now, firstPauseMs, longestPauseMs, changed } = options;
  let trouble: Exclude<EndpointHealth, "untried" | "healthy" | "slow"> | undefined;
  let tried = false;
  let slowWhy: string | undefined;
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
    return slowWhy === undefined ? "healthy" : "slow";
  }

  /** Makes a change, and reports it where the health is another one afterwards. */
  function change(make: () => void): void {
    const before = health();
    make();
    if (health() === before) return;
    since = now();
    changed(before, state);
  }

  const state: EndpointState = {
    get health() {
      return health();
    },
    get detail() {
      return trouble === undefined ? slowWhy : detail;
    },
    get since() {
      return since;
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
      // What was under way when the trouble began says nothing of its end.
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

    setSlow(why) {
      change(() => {
        slowWhy = why;
      });
    },
  };
  return state;
}
