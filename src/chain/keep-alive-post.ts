import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { urlToHttpOptions } from "node:url";

/** Posts JSON and gives the body of a 200 as text. Rejects with an {@link HttpFailure} otherwise. */
export type Post = (body: string) => Promise<string>;

/** Why a POST gave no answer. Its message names no address: RPC URLs hold API keys. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly kind: "timeout" | "status" | "connection" | "too_large";

  constructor(kind: HttpFailure["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * A POST over connections that are kept open. `node:http` and not `fetch`, which takes 0.4 ms of CPU per request
 * where this takes 0.1; the whole budget of a verify is 0.4 ms.
 */
export function createKeepAlivePost(
  url: URL,
  options: { timeoutMs: number; maxResponseBytes: number },
): Post {
  const { timeoutMs, maxResponseBytes } = options;
  const secure = url.protocol === "https:";
  const request = secure ? httpsRequest : httpRequest;
  // Idle sockets of an agent keep no process alive, so there is nothing to close.
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, scheduling: "lifo" });
  const target = { ...urlToHttpOptions(url), agent, method: "POST" };

  return (body) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const outgoing = request({ ...target, headers }, (response) => {
      // Drained, so that the connection can be used again.
      if (response.statusCode !== 200) {
        response.resume();
        fail("status", `HTTP ${response.statusCode}`);
        return;
      }
      collect(response, maxResponseBytes, finish, (failure) => {
        fail(failure.kind, failure.message);
        outgoing.destroy();
      });
    });

    // One limit for the whole exchange: a node that sends a byte now and then is not alive either.
    const timer = setTimeout(() => {
      fail("timeout", `no answer within ${timeoutMs} ms`);
      outgoing.destroy();
    }, timeoutMs);

    function finish(text: string): void {
      clearTimeout(timer);
      resolve(text);
    }
    function fail(kind: HttpFailure["kind"], message: string): void {
      clearTimeout(timer);
      reject(new HttpFailure(kind, message));
    }

    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      fail("connection", `the connection failed (${error.code ?? error.name})`);
    });
    outgoing.end(body);
    return promise;
  };
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
