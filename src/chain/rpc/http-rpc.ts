import { KitError, UndeterminedError } from "../../util/errors.ts";
import { type Answers, type Endpoint, extraCalls } from "./endpoint.ts";
import type { RpcObserver } from "./endpoint-state.ts";
import { createFailover, type FailoverPace, usualPace } from "./failover.ts";
import { type EndpointAnswer, type Question, type Rpc, type RpcCall, sizeOfCall } from "./rpc.ts";

type BatchingLimits = Required<
  Pick<HttpRpcOptions, "network" | "timeoutMs" | "maxBatch" | "maxBatchBytes" | "maxInFlight">
>;

type BatchingOptions = BatchingLimits & {
  /** Makes one HTTP request; `refused` is the highest among the questions. */
  read(questions: readonly Question[], refused: number): Promise<Answers>;
};

/**
 * While this many requests are in flight, the next one waits up to this many milliseconds for one of them to end, or
 * for a full batch: an HTTP request costs as much CPU as the rest of a verify, and can carry a hundred.
 */
const fewInFlight = 2;
const patienceMs = 5;

type Waiting = {
  calls: Question;
  refused: number;
  askedAt: number;
  resolve(answers: readonly EndpointAnswer[]): void;
  reject(error: unknown): void;
};

/** Combines the calls of concurrent callers into as few HTTP requests as possible. */
function createBatching(options: BatchingOptions) {
  const { network, timeoutMs, maxBatch, maxBatchBytes, maxInFlight, read } = options;
  let waiting: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;
  let patience: NodeJS.Timeout | undefined;
  let closed = false;

  function queue(calls: Question, refused: number): Promise<readonly EndpointAnswer[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly EndpointAnswer[]>();
    if (closed) reject(notSent(network, "the connection was closed"));
    else waiting.push({ calls, refused, askedAt: performance.now(), resolve, reject });
    schedule();
    return promise;
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // Runs after all readable sockets have been read, so that requests that arrived together leave together.
    setImmediate(() => {
      scheduled = false;
      dispatch();
    });
  }

  /** Returns true if the queue may be sent now; if it is only too early, schedules it. */
  function mayLeave(): boolean {
    const [oldest] = waiting;
    if (oldest === undefined || inFlight >= maxInFlight) return false;
    if (inFlight < fewInFlight || waiting.length >= maxBatch) return true;
    const leftMs = oldest.askedAt + patienceMs - performance.now();
    if (leftMs <= 0) return true;
    patience ??= setTimeout(() => {
      patience = undefined;
      dispatch();
    }, Math.ceil(leftMs));
    return false;
  }

  function dispatch(): void {
    while (mayLeave()) {
      const batch = takeBatch();
      if (batch.length === 0) continue;
      inFlight++;
      void answer(batch).finally(() => {
        inFlight--;
        dispatch();
      });
    }
  }

  /** Takes the oldest questions that fit in one batch, at least one; a question is never split. */
  function takeBatch(): Waiting[] {
    const tooOld = performance.now() - timeoutMs;
    const batch: Waiting[] = [];
    const distinct = new Set<RpcCall>();
    let taken = 0;
    let left = maxBatchBytes;
    for (const question of waiting) {
      const added = question.calls.filter((call) => !distinct.has(call));
      const size = added.reduce((sum, call) => sum + sizeOfCall(call), 0);
      if (batch.length > 0 && (distinct.size + added.length > maxBatch || size > left)) break;
      left -= size;
      taken++;
      if (question.askedAt < tooOld) {
        question.reject(notSent(network, "earlier requests got no answer"));
        continue;
      }
      for (const call of question.calls) distinct.add(call);
      batch.push(question);
    }
    waiting = waiting.slice(taken);
    return batch;
  }

  async function answer(questions: readonly Waiting[]): Promise<void> {
    try {
      const refused = Math.max(...questions.map((question) => question.refused));
      const answers = await read(
        questions.map(({ calls }) => calls),
        refused,
      );
      for (const { calls, resolve } of questions) resolve(calls.flatMap((call) => answers.get(call) ?? []));
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
  }

  return {
    /** @throws UndeterminedError when there is no answer, or none that can be parsed. */
    async ask(calls: Question, refused: number): Promise<readonly EndpointAnswer[]> {
      const parts = split(calls, options);
      if (parts.length <= 1) return queue(calls, refused);
      return (await Promise.all(parts.map((part) => queue(part, refused)))).flat();
    },

    split: (calls: Question) => split(calls, options),

    /** @throws UndeterminedError when it was closed. */
    requireOpen() {
      if (closed) throw notSent(network, "the connection was closed");
    },

    /** Rejects everything in the queue as undetermined. */
    close() {
      closed = true;
      clearTimeout(patience);
      for (const { reject } of waiting.splice(0)) reject(notSent(network, "the connection was closed"));
    },
  };
}

/** Splits calls into as few batches as possible, in order. */
function split(calls: Question, { maxBatch, maxBatchBytes }: BatchingLimits): readonly Question[] {
  const batches: RpcCall[][] = [];
  let left = 0;
  for (const call of calls) {
    const size = sizeOfCall(call);
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === maxBatch || size > left) {
      batches.push([call]);
      left = maxBatchBytes - size;
    } else {
      batch.push(call);
      left -= size;
    }
  }
  return batches;
}

function notSent(network: string, why: string): UndeterminedError {
  return new UndeterminedError(`${network} could not be reached; try again`, {
    cause: new Error(`not sent: ${why}`),
    hints: [`The RPC endpoints of ${network}: ${why}`],
  });
}

export type HttpRpcOptions = {
  /** The name of the chain in errors, which never contain the URLs. */
  network: string;
  /** The expected `eth_chainId`; only checked if there are several URLs. */
  chainId: number;
  /** In order of preference. */
  urls: readonly [string, ...string[]];
  /** The time for one HTTP request including the response, in milliseconds; 10 s by default. */
  timeoutMs?: number;
  /** Calls per HTTP request; 100 by default, above which providers refuse batches. */
  maxBatch?: number;
  /** Bytes of calls per HTTP request, unless a single question has more; nodes refuse requests above 1 MiB or so. */
  maxBatchBytes?: number;
  /** Concurrent HTTP requests for reads; further calls are collected and sent together, see {@link createHttpRpc}. */
  maxInFlight?: number;
  /** The pause before a failed read is retried if there is no other node, in milliseconds. */
  retryDelayMs?: number;
  /** The thresholds for switching between several URLs; the usual ones by default. */
  pace?: Partial<FailoverPace>;
  observer?: RpcObserver;
};

/**
 * JSON-RPC over HTTP. Concurrent reads share HTTP requests: always within one turn of the event loop; for a few
 * milliseconds while two requests are in flight; and while {@link HttpRpcOptions.maxInFlight} are, until one of them ends.
 *
 * A failed read is retried once, or, with several URLs, once at every other URL. A broadcast without a response goes to
 * the next URL with the same bytes; a single URL gets it once. A URL that is listed twice counts once.
 *
 * @throws KitError when a URL is invalid
 */
export function createHttpRpc(options: HttpRpcOptions): Rpc {
  const {
    network,
    chainId,
    timeoutMs = 10_000,
    maxBatchBytes = 262_144,
    maxInFlight = 8,
    retryDelayMs = 100,
    observer = {},
  } = options;
  const urls = distinct(
    options.urls.map((url, index) => readUrl(url, `RPC endpoint ${index + 1} of ${network}`)),
  );
  const maxBatch = (options.maxBatch ?? 100) - (urls.length > 1 ? extraCalls : 0);
  const pace = { ...usualPace, ...options.pace };
  const failover = createFailover({ network, chainId, urls, timeoutMs, retryDelayMs, pace, observer });
  const limits = { network, timeoutMs, maxBatch, maxBatchBytes, maxInFlight };
  const all = createBatching({ ...limits, read: failover.read });
  /** A separate queue for each endpoint, once it has been used. */
  const single = new Map<Endpoint, ReturnType<typeof createBatching>>();

  function batchingOf(endpoint: Endpoint) {
    const known = single.get(endpoint);
    if (known !== undefined) return known;
    const made = createBatching({
      ...limits,
      read: (questions) => failover.readAt(endpoint, questions),
    });
    single.set(endpoint, made);
    return made;
  }

  return {
    ask: (calls, refused = 0) => all.ask(calls, refused),

    endpoints() {
      return failover.all().map((endpoint) => ({
        endpoint: endpoint.label,
        ask: (calls) => (urls.length === 1 ? all : batchingOf(endpoint)).ask(calls, 0),
      }));
    },

    async send(calls, { everywhere = false } = {}) {
      all.requireOpen();
      await failover.send(all.split(calls), { everywhere });
    },

    close() {
      for (const batching of [all, ...single.values()]) batching.close();
      failover.close();
    },
  };
}

/** The same URL twice is one endpoint, and must count only once. */
function distinct(urls: readonly URL[]): readonly URL[] {
  return [...new Map(urls.map((url) => [url.href, url])).values()];
}

/** Parses a URL. Node's own error would contain it, and it may hold a key. */
function readUrl(text: string, name: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new KitError(`${name} is not a URL that begins with http:// or https://`);
  }
  return url;
}
