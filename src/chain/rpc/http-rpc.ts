import { KitError } from "../../util/errors.ts";
import { type Batching, createBatching } from "./batching.ts";
import { type Endpoint, extraCalls } from "./endpoint.ts";
import { createFailover, type FailoverPace, usualPace } from "./failover.ts";
import type { Rpc } from "./rpc.ts";
import type { RpcObserver } from "./rpc-status.ts";

export type HttpRpcOptions = {
  /** Names the chain in errors; the URLs never appear there. */
  network: string;
  /** What `eth_chainId` must say; checked where there are several URLs. */
  chainId: number;
  /** In order of preference. */
  urls: readonly [string, ...string[]];
  /** Milliseconds for one HTTP request, answer included. */
  timeoutMs?: number;
  /** Calls in one HTTP request; providers refuse batches above some 100. */
  maxBatch?: number;
  /** Bytes of calls in one HTTP request, unless a single question has more; nodes refuse requests above 1 MiB or more. */
  maxBatchBytes?: number;
  /** HTTP requests for reads at a time; what is asked in the meantime goes out together, see {@link createHttpRpc}. */
  maxInFlight?: number;
  /** Milliseconds before a failed read is tried again where there is no other node to ask. */
  retryDelayMs?: number;
  /** When one of several URLs is passed over. */
  pace?: Partial<FailoverPace>;
  observer?: RpcObserver;
};

/**
 * JSON-RPC over HTTP. Reads that are asked at the same time share HTTP requests: in one turn of the event loop
 * always, while two requests are under way for a few milliseconds, and while {@link HttpRpcOptions.maxInFlight} are, until
 * one of them is answered.
 *
 * A read that fails is tried once more, or once at every other URL where there are several. A broadcast that gets
 * no answer goes to the next URL, as the same bytes; to a single URL it goes once. A URL that is named twice counts once.
 *
 * @throws KitError when a URL is none
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
  /** Each endpoint by itself, once it was asked for. */
  const single = new Map<Endpoint, Batching>();

  function batchingOf(endpoint: Endpoint): Batching {
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

    status: () => failover.status(),
    probe: () => failover.probe(),

    close() {
      for (const batching of [all, ...single.values()]) batching.close();
      failover.close();
    },
  };
}

/** The same URL twice is one endpoint: its word must not count twice. */
function distinct(urls: readonly URL[]): readonly URL[] {
  return [...new Map(urls.map((url) => [url.href, url])).values()];
}

/** Node's own error for a bad URL carries the URL, which may hold a key. */
function readUrl(text: string, name: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new KitError(`${name} is not a URL that begins with http:// or https://`);
  }
  return url;
}
