import type { Hex } from "../../protocol/hex.ts";

/** None of each of the {@link EndpointError errors}, to count from. */
export const noErrors = {
  timeout: 0,
  connection: 0,
  http_3xx: 0,
  http_4xx: 0,
  http_5xx: 0,
  rate_limited: 0,
  refused: 0,
  too_large: 0,
  malformed: 0,
  wrong_chain: 0,
  lagging: 0,
};

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
export type EndpointError = keyof typeof noErrors;

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

/** What a request to an endpoint was for: reads, a broadcast, or to learn how the endpoint is. */
export type Purpose = "read" | "send" | "probe";

/** One endpoint of a network, as an operator may be shown it: without its URL, which may hold a key. */
export type EndpointStatus = {
  /** Its place in the configuration: "1" is the most preferred. */
  label: string;
  /** Whether the next read goes to it first. */
  inUse: boolean;
  health: EndpointHealth;
  /** What is wrong with it, in a few words without secrets; undefined while nothing is. */
  detail: string | undefined;
  /** Unix milliseconds: since when it has been that way. */
  since: number;
  /** The newest block it showed; undefined before it has, and where nothing asked for one. */
  head: { number: bigint; timestamp: bigint; seenAt: number } | undefined;
  /** The chain it says it serves; undefined before it was asked. */
  chainId: number | undefined;
  /** Milliseconds that its answers take, smoothed over the last ones; undefined before the first. */
  latencyMs: number | undefined;
  /** HTTP requests since the start. */
  requests: Readonly<Record<Purpose, number>>;
  /** Those that gave nothing usable, by why. */
  errors: Readonly<Record<EndpointError, number>>;
};

/** All endpoints of a network, in the order of the configuration. Taking it asks no endpoint. */
export type RpcStatus = { endpoints: readonly EndpointStatus[] };

/** A call as observers see it; `about` is that of `RpcCall`. */
export type ObservedCall = { readonly method: string; readonly about?: Hex | undefined };

/** One HTTP request to an endpoint, once it is over. */
export type RpcExchange = {
  /** {@link EndpointStatus.label} */
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

export type HealthChange = {
  /** {@link EndpointStatus.label} */
  endpoint: string;
  from: EndpointHealth;
  to: EndpointHealth;
  /** {@link EndpointStatus.detail} */
  detail: string | undefined;
};

/** Called as it happens, for histograms and logs. Must not throw. */
export type RpcObserver = {
  exchanged?(exchange: RpcExchange): void;
  healthChanged?(change: HealthChange): void;
};
