import { BatchRefused, describeError, readBatch, writeBatch } from "./json-rpc.ts";
import { createKeepAlivePost, HttpFailure } from "./keep-alive-post.ts";
import type { RpcAnswer, RpcCall } from "./rpc.ts";
import type { EndpointError, Purpose, RpcExchange } from "./rpc-status.ts";

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

/** What the calls of one batch were answered with. */
export type Answers = ReadonlyMap<RpcCall, RpcAnswer>;

/** One URL: talks to it, and counts what comes of that. */
export type Endpoint = {
  readonly label: string;
  readonly requests: Readonly<Record<Purpose, number>>;
  readonly errors: Readonly<Record<EndpointError, number>>;
  /** Milliseconds an answer takes, smoothed; undefined before the first. */
  readonly latencyMs: number | undefined;
  /**
   * Sends the calls in one HTTP request, and gives a failure when there is no answer to every one of them in time,
   * or when `judge` finds something wrong with the answers. Never throws. `timeoutMs` is for when less time than
   * usual may be taken.
   */
  exchange(
    purpose: Purpose,
    calls: readonly RpcCall[],
    timeoutMs?: number,
    judge?: (answers: Answers) => EndpointFailure | undefined,
  ): Promise<Answers | EndpointFailure>;
  /** Ends what is under way, and every connection. */
  close(): void;
};

const maxResponseBytes = 10_485_760;

/** The weight of the newest latency in the smoothed one. */
const latencyWeight = 0.3;

/**
 * JSON-RPC codes for "too many requests", which providers give to single calls of a batch: EIP-1474, the HTTP status
 * as Alchemy uses it, QuickNode.
 */
const rateLimitCodes: ReadonlySet<number | undefined> = new Set([-32005, 429, -32007]);

export function createEndpoint(options: {
  label: string;
  url: URL;
  /** The longest that a request takes. */
  timeoutMs: number;
  /** Removes what must not be shown from a provider's words. */
  redact: (text: string) => string;
  exchanged?: ((exchange: RpcExchange) => void) | undefined;
}): Endpoint {
  const { label, url, redact, exchanged } = options;
  const post = createKeepAlivePost(url, { timeoutMs: options.timeoutMs, maxResponseBytes });
  const requests: Record<Purpose, number> = { read: 0, send: 0, probe: 0 };
  const errors: Record<EndpointError, number> = {
    timeout: 0,
    connection: 0,
    http_3xx: 0,
    http_4xx: 0,
    http_5xx: 0,
    rate_limited: 0,
    refused: 0,
    malformed: 0,
    wrong_chain: 0,
    lagging: 0,
  };
  let latencyMs: number | undefined;

  async function request(
    calls: readonly RpcCall[],
    timeoutMs: number | undefined,
  ): Promise<Answers | EndpointFailure> {
    try {
      const { body, firstId } = writeBatch(calls);
      const answers = readBatch(await post(body, timeoutMs), firstId, calls);
      for (const { error } of answers.values()) {
        if (error !== undefined) error.message = redact(error.message);
      }
      return findRateLimit(answers) ?? answers;
    } catch (error) {
      return classify(error);
    }
  }

  function classify(error: unknown): EndpointFailure {
    const message = redact(error instanceof Error ? error.message : String(error));
    if (error instanceof HttpFailure) return new EndpointFailure(kindOf(error), message, error.retryAfterMs);
    const refused = error instanceof BatchRefused;
    if (refused && rateLimitCodes.has(error.error.code)) return new EndpointFailure("rate_limited", message);
    return new EndpointFailure(refused ? "refused" : "malformed", message);
  }

  return {
    label,
    requests,
    errors,
    get latencyMs() {
      return latencyMs;
    },

    async exchange(purpose, calls, timeoutMs, judge) {
      const startedAt = performance.now();
      requests[purpose]++;
      const answers = await request(calls, timeoutMs);
      const durationMs = performance.now() - startedAt;
      const failure = answers instanceof EndpointFailure ? answers : judge?.(answers);
      if (answers !== failure) {
        latencyMs =
          latencyMs === undefined ? durationMs : latencyMs + latencyWeight * (durationMs - latencyMs);
      }
      if (failure !== undefined) errors[failure.kind]++;
      exchanged?.({
        ...{ endpoint: label, purpose, durationMs },
        methods: calls.map(({ method }) => method),
        error: failure?.kind,
      });
      return failure ?? answers;
    },

    close: () => post.close(),
  };
}

/** One call that was refused for its being one too many spoils the batch. */
function findRateLimit(answers: Answers): EndpointFailure | undefined {
  for (const [{ method }, { error }] of answers) {
    if (error === undefined || !rateLimitCodes.has(error.code)) continue;
    // To a question for logs, -32005 also says that there are too many of them.
    if (method !== "eth_getLogs") return new EndpointFailure("rate_limited", describeError(error));
  }
  return undefined;
}

function kindOf({ kind, status = 0 }: HttpFailure): EndpointError {
  if (kind === "timeout" || kind === "connection") return kind;
  if (status === 429) return "rate_limited";
  if (status >= 500) return "http_5xx";
  if (status >= 400) return "http_4xx";
  return status >= 300 ? "http_3xx" : "malformed";
}
