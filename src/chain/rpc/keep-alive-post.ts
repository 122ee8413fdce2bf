import type { IncomingMessage } from "node:http";
import https from "node:https";
import { urlToHttpOptions } from "node:url";
import { http } from "../../util/node-http.ts";

/** Posts JSON to one address. */
export type Post = {
  /**
   * Gives the body of a 200 as text.
   *
   * @throws HttpFailure otherwise, after `timeoutMs` at the latest.
   */
  (body: string, timeoutMs?: number): Promise<string>;
  /** Ends what is under way, and every connection. Without it, idle connections keep no process alive. */
  close(): void;
};

/** Why a POST gave no answer. Its message names no address: RPC URLs hold API keys. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly kind: "timeout" | "status" | "connection" | "too_large";
  /** The HTTP status, where `kind` is "status". */
  readonly status: number | undefined;
  /** How long the server asked to be left alone, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: HttpFailure["kind"],
    message: string,
    { status, retryAfterMs }: { status?: number | undefined; retryAfterMs?: number | undefined } = {},
  ) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * POSTs over connections that are kept open. `node:http` and not `fetch`, which takes 0.4 ms of CPU per request
 * where this takes 0.1; the whole budget of a verify is 0.4 ms.
 */
export function createKeepAlivePost(
  url: URL,
  options: {
    timeoutMs: number;
    maxResponseBytes: number;
    /** How long a connection stays open unused; by default, as long as the other side keeps it. */
    idleMs?: number;
    /** Requests beyond them wait for their turn, within their time. */
    maxConnections?: number;
  },
): Post {
  const { maxResponseBytes, idleMs, maxConnections = Number.POSITIVE_INFINITY } = options;
  const { request, Agent } = url.protocol === "https:" ? https : http;
  const agent = new Agent({
    keepAlive: true,
    scheduling: "lifo",
    maxSockets: maxConnections,
    ...(idleMs !== undefined && { timeout: idleMs }),
  });
  const target = { ...urlToHttpOptions(url), agent, method: "POST" };

  function post(body: string, timeoutMs = options.timeoutMs): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const outgoing = request({ ...target, headers }, (response) => {
      const { statusCode: status } = response;
      // Drained, so that the connection can be used again.
      if (status !== 200) {
        response.resume();
        const retryAfterMs = readRetryAfter(response.headers["retry-after"], Date.now());
        fail(new HttpFailure("status", `HTTP ${status}`, { status, retryAfterMs }));
        return;
      }
      collect(response, maxResponseBytes, finish, (failure) => {
        fail(failure);
        outgoing.destroy();
      });
    });

    // One limit for the whole exchange: a node that sends a byte now and then is not alive either.
    const timer = setTimeout(() => {
      fail(new HttpFailure("timeout", `no answer within ${timeoutMs} ms`));
      outgoing.destroy();
    }, timeoutMs);

    function finish(text: string): void {
      clearTimeout(timer);
      resolve(text);
    }
    function fail(failure: HttpFailure): void {
      clearTimeout(timer);
      reject(failure);
    }

    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      fail(new HttpFailure("connection", `the connection failed (${error.code ?? error.name})`));
    });
    outgoing.end(body);
    return promise;
  }

  return Object.assign(post, { close: () => agent.destroy() });
}

function collect(
  response: IncomingMessage,
  maxBytes: number,
  finish: (text: string) => void,
  fail: (failure: HttpFailure) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    size += chunk.length;
    chunks.push(chunk);
    if (size > maxBytes) fail(new HttpFailure("too_large", `answered with more than ${maxBytes} bytes`));
  });
  response.on("end", () => finish(Buffer.concat(chunks).toString()));
  response.on("error", () => fail(new HttpFailure("connection", "the connection broke off")));
}

/**
 * Milliseconds that a `Retry-After` header asks to wait (RFC 9110: seconds, or a date); undefined when it is missing
 * or neither. `now` is in unix milliseconds.
 */
export function readRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // Date.parse takes much that is no date of HTTP, such as "-1" or "5 minutes".
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return undefined;
  const until = Date.parse(text);
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
