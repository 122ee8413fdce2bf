import type { Agent, IncomingMessage, RequestOptions } from "node:http";
import https from "node:https";
import { urlToHttpOptions } from "node:url";
import { KitError } from "./errors.ts";
import { joinHeaders, parseJson, unlessTooDeep } from "./json.ts";
import { http } from "./node-http.ts";

/*
 * The only HTTP client. It uses `node:http`, which takes 0.1 ms of CPU per request; `fetch` takes 0.4 (the whole budget of a
 * verify), plus 80 ms for the first request of a process, and its pool keeps the process alive.
 */

export type HttpRequest = {
  method?: string;
  /** The request target, sent unchanged: `http://any/report`, `/./report`. By default the path and query of the URL. */
  target?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  body?: string | undefined;
  /**
   * The limit for the whole exchange, in milliseconds: a server that sends a byte now and then counts as dead too. 30 s
   * for a GET and 120 s for others by default.
   */
  timeoutMs?: number;
  /** The maximum size of the answer, in bytes. */
  maxBytes?: number;
  /** Any other status fails at once, its body unread. */
  onlyStatus?: number;
  signal?: AbortSignal;
  /** `false` for a separate connection; by default the connections of the process, which are kept open. */
  agent?: Agent | false;
};

/** A complete answer. */
export type HttpAnswer = { status: number; readonly headers: Record<string, string>; text: string };

/**
 * Thrown if a request got no answer. Its message contains no address, since URLs may contain keys. `cause`, the
 * system's error, does; it is missing if the address is secret.
 */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly kind: "timeout" | "status" | "connection" | "too_large";
  /** The HTTP status if `kind` is "status". */
  readonly status: number | undefined;
  /** How long the server asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The system's code for a failed connection, such as `ECONNRESET`. */
  readonly code: string | undefined;
  /** The part of an answer received before the connection broke. */
  readonly partial: HttpAnswer | undefined;

  constructor(
    kind: HttpFailure["kind"],
    message: string,
    more: Partial<Pick<HttpFailure, "status" | "retryAfterMs" | "code" | "partial" | "cause">> = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
    this.code = more.code;
    this.partial = more.partial;
  }
}

/**
 * The time limit for answers that need no settlement, in milliseconds: descriptions, lists of payments, the 402 of a
 * shop. They come at once, or after some seconds if the machine is busy.
 */
export const answersWithinMs = 30_000;

/** Longer than a service waits for a settlement by default. */
const usualTimeoutMs = 120_000;
const usualMaxBytes = 64 * 1024 * 1024;

/** A URL parsed once for all requests to it. */
type Target = RequestOptions & { isSecret?: boolean };

/**
 * Sends a request and reads the whole answer.
 *
 * @throws HttpFailure when there is none in time
 */
export async function sendHttp(url: string | URL, request: HttpRequest = {}): Promise<HttpAnswer> {
  return exchange(targetOf(url, request), request);
}

/**
 * Sends a request; resolves with the head of the answer, whose body the caller must read. Has no time limit by default.
 *
 * @param options.timeoutMs for the head
 * @param options.isIdle true for an exchange that must not keep the process alive
 * @throws HttpFailure when the connection fails before that
 */
export async function openHttp(
  url: string | URL,
  request: Omit<HttpRequest, "maxBytes" | "onlyStatus"> & { isIdle?: boolean } = {},
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = begin(targetOf(url, request), request, resolve, reject);
  if (request.isIdle) outgoing.on("socket", (socket) => socket.unref());
  const { timeoutMs } = request;
  if (timeoutMs === undefined) return promise;
  const timer = setTimeout(() => {
    reject(late(timeoutMs));
    outgoing.destroy();
  }, timeoutMs);
  return promise.finally(() => clearTimeout(timer));
}

/**
 * The error for a request without an answer: it tells if nothing listens there, or if the server failed to answer.
 *
 * @param message used if nothing listens there
 */
export function noAnswer(where: string, failure: unknown, message = `Nothing answers at ${where}`): KitError {
  const { kind, partial, cause = failure } = failure instanceof HttpFailure ? failure : {};
  if (kind === "too_large") {
    return new KitError(`The answer of ${where} is too long`, { cause, code: "unexpected-answer" });
  }
  const hints = [
    "Something listens there, but it hangs or is overloaded: see its output, or start it again.",
  ];
  if (kind === "timeout") {
    return new KitError(`${where} gave no complete answer in time`, { cause, code: "unreachable", hints });
  }
  if (partial !== undefined) {
    return new KitError(`The answer of ${where} broke off`, { cause, code: "unreachable", hints });
  }
  return new KitError(message, { cause, code: "unreachable" });
}

export type JsonResponse = Omit<HttpAnswer, "text"> & { body: unknown };

/**
 * Sends a request with a JSON body, if any, and reads a JSON answer.
 *
 * @throws KitError when there is no answer, or it is not JSON
 */
export async function requestJson(
  url: string,
  { body, headers, ...request }: Omit<HttpRequest, "body"> & { body?: unknown } = {},
): Promise<JsonResponse> {
  const types = body === undefined ? {} : { "content-type": "application/json" };
  const answer = await sendHttp(url, {
    ...request,
    headers: { ...types, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch((error: unknown) => {
    throw noAnswer(url, error, `No answer from ${url}`);
  });
  const { status, text } = answer;
  const read = unlessTooDeep(parseJson(text));
  if (read !== undefined) return { status, headers: answer.headers, body: read };
  throw new KitError(`The answer of ${url} has status ${status} and is not JSON`, {
    code: "unexpected-answer",
  });
}

/** Posts JSON to one address. */
export type Post = {
  /**
   * Returns the body of a 200 as text.
   *
   * @throws HttpFailure otherwise, after `timeoutMs` at the latest.
   */
  (body: string, timeoutMs?: number): Promise<string>;
  /** Ends requests in progress and closes every connection. Even without it, idle connections keep no process alive. */
  close(): void;
};

/** POSTs JSON over connections to one address that are kept open. */
export function createKeepAlivePost(
  url: URL,
  options: {
    timeoutMs: number;
    maxResponseBytes: number;
    /** How long an unused connection stays open; by default as long as the other side allows. */
    idleMs?: number;
    /** Further requests are queued, within their time limit. */
    maxConnections?: number;
  },
): Post {
  const { maxResponseBytes: maxBytes, idleMs, maxConnections = Number.POSITIVE_INFINITY } = options;
  const { Agent } = url.protocol === "https:" ? https : http;
  const agent = new Agent({
    keepAlive: true,
    scheduling: "lifo",
    maxSockets: maxConnections,
    ...(idleMs !== undefined && { timeout: idleMs }),
  });
  const target = { ...targetOf(url, { agent }), isSecret: true };
  const headers = { "content-type": "application/json" };
  const post = async (body: string, timeoutMs = options.timeoutMs) => {
    const request = { method: "POST", headers, body, timeoutMs, maxBytes, onlyStatus: 200 };
    return (await exchange(target, request)).text;
  };
  return Object.assign(post, { close: () => agent.destroy() });
}

function targetOf(url: string | URL, { agent }: HttpRequest): Target {
  return { ...urlToHttpOptions(new URL(url)), ...(agent !== undefined && { agent }) };
}

function begin(
  target: Target,
  { method = "GET", target: path, headers = {}, body, signal }: HttpRequest,
  onResponse: (response: IncomingMessage) => void,
  onFailure: (failure: HttpFailure) => void,
) {
  const { request } = target.protocol === "https:" ? https : http;
  const outgoing = request(
    {
      ...target,
      ...(path !== undefined && { path }),
      method,
      headers,
      ...(signal !== undefined && { signal }),
    },
    onResponse,
  );
  outgoing.on("error", (error: NodeJS.ErrnoException) => onFailure(brokenBy(target, error)));
  outgoing.end(body);
  return outgoing;
}

/** How much of an unneeded answer is read, in bytes, so that its connection can be reused. */
const mostDrained = 65_536;
const drainMs = 1_000;

function drain(response: IncomingMessage): void {
  let size = 0;
  const timer = setTimeout(() => response.destroy(), drainMs).unref();
  response.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > mostDrained) response.destroy();
  });
  response.on("error", () => {});
  response.once("close", () => clearTimeout(timer));
}

function exchange(target: Target, request: HttpRequest): Promise<HttpAnswer> {
  const { method = "GET", maxBytes = usualMaxBytes, onlyStatus } = request;
  const { timeoutMs = method === "GET" ? answersWithinMs : usualTimeoutMs } = request;
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const fail = (failure: HttpFailure) => {
    clearTimeout(timer);
    reject(failure);
  };
  const cut = (failure: HttpFailure) => {
    fail(failure);
    outgoing.destroy();
  };
  let answered = false;
  const outgoing = begin(target, request, receive, (failure) => {
    // An answer that has begun reports its own errors.
    if (!answered) fail(failure);
  });
  const timer = setTimeout(() => cut(late(timeoutMs)), timeoutMs);

  function receive(response: IncomingMessage): void {
    answered = true;
    const { statusCode: status = 0 } = response;
    if (onlyStatus !== undefined && status !== onlyStatus) {
      drain(response);
      const retryAfterMs = readRetryAfter(response.headers["retry-after"], Date.now());
      fail(new HttpFailure("status", `HTTP ${status}`, { status, retryAfterMs }));
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    const read = (): HttpAnswer => ({
      status,
      // Joined only when they are accessed.
      get headers() {
        return joinHeaders(response.headers);
      },
      text: Buffer.concat(chunks).toString(),
    });
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) cut(new HttpFailure("too_large", `answered with more than ${maxBytes} bytes`));
    });
    response.on("end", () => {
      clearTimeout(timer);
      resolve(read());
    });
    response.on("error", (error) => {
      if (size <= maxBytes) fail(brokenBy(target, error, read()));
    });
  }
  return promise;
}

const late = (timeoutMs: number) => new HttpFailure("timeout", `no answer within ${timeoutMs} ms`);

/** @param partial the part of the answer received so far */
function brokenBy({ isSecret }: Target, error: NodeJS.ErrnoException, partial?: HttpAnswer): HttpFailure {
  const { code = error.name } = error;
  const message = partial === undefined ? `the connection failed (${code})` : "the connection broke off";
  return new HttpFailure("connection", message, { code, partial, cause: isSecret ? undefined : error });
}

/**
 * The wait that a `Retry-After` header asks for, in milliseconds (RFC 9110: seconds, or a date); undefined if it is
 * missing or neither. `now` is in unix milliseconds.
 */
export function readRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // Date.parse accepts much that is not an HTTP date, such as "-1" or "5 minutes".
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return undefined;
  const until = Date.parse(text);
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
