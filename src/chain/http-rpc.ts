import { setTimeout as delay } from "node:timers/promises";
import { KitError } from "../errors/base.ts";
import { UndeterminedError } from "../errors/undetermined.ts";
import { describeError, readArray, readBatch, writeBatch } from "./json-rpc.ts";
import { createKeepAlivePost, HttpFailure, type Post } from "./keep-alive-post.ts";
import { createRedactor } from "./redact.ts";
import type { Rpc, RpcAnswer, RpcCall } from "./rpc.ts";

export type HttpRpcOptions = {
  /** Names the chain in errors; the URLs never appear there. */
  network: string;
  urls: readonly [string, ...string[]];
  /** Milliseconds for one HTTP request, answer included. */
  timeoutMs?: number;
  /** Calls in one HTTP request; providers refuse batches above some 100. */
  maxBatch?: number;
  /** HTTP requests for reads at a time; what is asked in the meantime goes out together. */
  maxInFlight?: number;
  /** Milliseconds before a failed read is tried again where there is no other node to ask. */
  retryDelayMs?: number;
};

type Question = {
  calls: readonly RpcCall[];
  askedAt: number;
  resolve(answers: readonly RpcAnswer[]): void;
  reject(error: unknown): void;
};

const maxResponseBytes = 10_485_760;

// JSON-RPC codes for "too many requests", which providers give to single calls of a batch: EIP-1474, the HTTP
// status as Alchemy uses it, QuickNode.
const rateLimitCodes: ReadonlySet<number | undefined> = new Set([-32005, 429, -32007]);

/**
 * JSON-RPC over HTTP. Reads that are asked at the same time share HTTP requests: in one turn of the event loop
 * always, and while {@link HttpRpcOptions.maxInFlight} requests are under way until one of them is answered.
 *
 * A read that fails is tried once more, or once at every other URL where there are several; the one that answers is
 * asked first from then on. Sends are never repeated here.
 *
 * @throws KitError when a URL is none
 */
export function createHttpRpc(options: HttpRpcOptions): Rpc {
  const { network, timeoutMs = 10_000, maxBatch = 100, maxInFlight = 8, retryDelayMs = 100 } = options;
  const urls = options.urls.map((url, index) => readUrl(url, `RPC endpoint ${index + 1} of ${network}`));
  const redact = createRedactor(urls);
  const posts = urls.map((url) => createKeepAlivePost(url, { timeoutMs, maxResponseBytes }));
  const attempts = Math.max(2, posts.length);
  let current = 0;
  let waiting: Question[] = [];
  let inFlight = 0;
  let scheduled = false;

  function queue(calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly RpcAnswer[]>();
    waiting.push({ calls, askedAt: performance.now(), resolve, reject });
    schedule();
    return promise;
  }

  function split(calls: readonly RpcCall[]): (readonly RpcCall[])[] {
    const parts = [];
    for (let start = 0; start < calls.length; start += maxBatch)
      parts.push(calls.slice(start, start + maxBatch));
    return parts;
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // After the sockets that are readable now have been read: requests that arrived together leave together.
    setImmediate(() => {
      scheduled = false;
      dispatch();
    });
  }

  function dispatch(): void {
    while (waiting.length > 0 && inFlight < maxInFlight) {
      const batch = takeBatch();
      if (batch.length === 0) continue;
      inFlight++;
      void answer(batch).finally(() => {
        inFlight--;
        dispatch();
      });
    }
  }

  /** The longest-waiting questions that fit in one batch; a question is never split. */
  function takeBatch(): Question[] {
    const tooOld = performance.now() - timeoutMs;
    const batch: Question[] = [];
    const distinct = new Set<RpcCall>();
    let taken = 0;
    for (const question of waiting) {
      const added = question.calls.filter((call) => !distinct.has(call)).length;
      if (batch.length > 0 && distinct.size + added > maxBatch) break;
      taken++;
      if (question.askedAt < tooOld) {
        question.reject(undetermined(new HttpFailure("timeout", "not sent: earlier requests got no answer")));
        continue;
      }
      for (const call of question.calls) distinct.add(call);
      batch.push(question);
    }
    waiting = waiting.slice(taken);
    return batch;
  }

  async function answer(questions: readonly Question[]): Promise<void> {
    try {
      const answers = await read([...new Set(questions.flatMap(({ calls }) => calls))]);
      for (const { calls, resolve } of questions) resolve(calls.flatMap((call) => answers.get(call) ?? []));
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
  }

  async function read(calls: readonly RpcCall[]): Promise<ReadonlyMap<RpcCall, RpcAnswer>> {
    for (let attempt = 1; ; attempt++) {
      const asked = current;
      try {
        const { body, firstId } = writeBatch(calls);
        const answers = readBatch(await postOf(asked)(body), firstId, calls);
        for (const { error } of answers.values()) {
          if (error === undefined) continue;
          error.message = redact(error.message);
          if (rateLimitCodes.has(error.code)) throw new Error(describeError(error));
        }
        return answers;
      } catch (error) {
        const alone = posts.length === 1;
        // A node that was given its time gets no second helping.
        const slow = error instanceof HttpFailure && error.kind === "timeout";
        if (attempt === attempts || (alone && slow)) throw undetermined(error, asked);
        if (alone) await delay(retryDelayMs);
        else if (current === asked) current = (asked + 1) % posts.length;
      }
    }
  }

  function postOf(position: number): Post {
    const post = posts[position];
    if (post === undefined) throw new RangeError(`no RPC endpoint ${position}`);
    return post;
  }

  function undetermined(failure: unknown, position = current): UndeterminedError {
    const cause = redact(failure instanceof Error ? failure.message : String(failure));
    return new UndeterminedError(`${network} could not be reached; try again`, {
      cause: new Error(cause),
      hints: [`RPC endpoint ${position + 1} of ${posts.length} of ${network}: ${cause}`],
    });
  }

  return {
    async ask(calls) {
      if (calls.length <= maxBatch) return queue(calls);
      return (await Promise.all(split(calls).map(queue))).flat();
    },

    async send(calls) {
      const position = current;
      try {
        for (const part of split(calls)) readArray(await postOf(position)(writeBatch(part).body));
      } catch (error) {
        throw undetermined(error, position);
      }
    },
  };
}

/** Node's own error for a bad URL carries the URL, which may hold a key. */
function readUrl(text: string, name: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new KitError(`${name} is not a URL that begins with http:// or https://`);
  }
  return url;
}
