import type { Hex } from "../../protocol/hex.ts";
import { isObject, membersOf } from "../../util/json.ts";

/** One JSON-RPC call. The same object asked by several callers at once goes out once. */
export type RpcCall = {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * The id of the settlement or the hash of the transaction that it is asked for, which observers are told and nodes are
   * not; undefined where it is for whatever is asked with it.
   */
  readonly about?: Hex | undefined;
};

/** The calls of one `ask` or `send`: what several callers ask at the same time shares an HTTP request. */
export type Question = readonly RpcCall[];

/** The error a node returns instead of a result. `message` is for people; no code reads it. */
export type RpcError = { code: number | undefined; message: string; data: unknown };

export type RpcAnswer =
  | { readonly result: unknown; readonly error?: undefined }
  | { readonly result?: undefined; readonly error: RpcError };

/** The same, with the label of the endpoint that gave it, its source. */
export type EndpointAnswer = RpcAnswer & { readonly endpoint: string };

/** One endpoint of a network: what it is asked is answered by it, or by none. */
export type RpcEndpoint = {
  /** Its label: its place in the configuration, counted from 1. */
  readonly endpoint: string;
  /**
   * Reads, as {@link Rpc.ask} does.
   *
   * @throws UndeterminedError also, and at once, while the endpoint is left alone after a failure.
   */
  ask(calls: readonly RpcCall[]): Promise<readonly EndpointAnswer[]>;
};

/** Reads a chain. */
export type RpcReader = {
  /**
   * Reads. May be repeated, at another node too, and share a request with other callers. Gives the answers in the
   * order of the calls; an error that a node gives to a single call is an answer here. A caller that cannot use
   * such an answer asks again and says how many times it was `refused`: from the second time on, other nodes are
   * asked first.
   *
   * @throws UndeterminedError when there was no answer, or none that can be understood.
   */
  ask(calls: readonly RpcCall[], refused?: number): Promise<readonly EndpointAnswer[]>;
};

/**
 * A node, or several that stand in for one another. The calls of one `ask` or `send` always go to the same node and
 * in one HTTP request, as long as they fit in a batch: what they say of the chain belongs together.
 */
export type Rpc = RpcReader & {
  /**
   * Writes, in the given order. Resolves when a node has answered, whatever it said of the single calls; where one
   * does not, the next gets the very same calls. With `everywhere` all nodes that are well get them, at once: for
   * what was sent before, and came to nothing.
   *
   * @throws UndeterminedError when none answered: the calls may or may not have arrived.
   */
  send(calls: readonly RpcCall[], options?: { everywhere?: boolean }): Promise<void>;
  /** Each endpoint by itself, those first that {@link ask} prefers at the moment; always as many as are configured. */
  endpoints(): readonly RpcEndpoint[];
  /** Ends what is under way, undetermined, and all that goes on in the background. Nothing can be asked any more. */
  close(): void;
};

/** JSON-RPC 2.0 batches: writing them, and reading what comes back without trusting any of it. */

// Never used twice in a process, so that an answer that belongs to another request is noticed.
let nextId = 1;

/** A node that answers a whole batch with one error. */
export class BatchRefused extends Error {
  override readonly name = "BatchRefused";
  readonly error: RpcError;

  constructor(error: RpcError) {
    super(`refused the batch: ${describeError(error)}`);
    this.error = error;
  }
}

/** The method and the parameters of calls as JSON: written once, however often a call is counted and sent. */
const written = new WeakMap<RpcCall, string>();

function writeCall(call: RpcCall): string {
  const known = written.get(call);
  if (known !== undefined) return known;
  const { method, params } = call;
  const text = `"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`;
  written.set(call, text);
  return text;
}

/** A batch request: its body, and the id of the first call; the others count up from there. */
export function writeBatch(calls: readonly RpcCall[]): { body: string; firstId: number } {
  const firstId = nextId;
  const body = calls.map((call) => `{"jsonrpc":"2.0","id":${nextId++},${writeCall(call)}`);
  return { body: `[${body.join(",")}]`, firstId };
}

/** Around a call in a batch: the version, an id, a comma. */
const callEnvelopeBytes = 50;

/** How much a call adds to a batch, in bytes; hardly more than it really is. */
export function sizeOfCall(call: RpcCall): number {
  return writeCall(call).length + callEnvelopeBytes;
}

/**
 * The answers of a batch, by its calls, every one of them; `endpoint` is the label of who gave them,
 * where there are several.
 *
 * @throws Error when the text is not a JSON array with exactly one answer to each call. Batches may come back in
 * any order, and some nodes answer a batch with one error object ({@link BatchRefused}): only ids say which answer is
 * whose.
 */
export function readBatch(
  text: string,
  firstId: number,
  calls: readonly RpcCall[],
  endpoint = "",
): ReadonlyMap<RpcCall, EndpointAnswer> {
  const answers = new Map<RpcCall, EndpointAnswer>();
  for (const entry of readArray(text)) {
    const { id, result, error } = membersOf(entry);
    const call = typeof id === "number" ? calls[id - firstId] : undefined;
    if (call === undefined) throw new Error("answered with an id that was not asked");
    if (answers.has(call)) throw new Error("answered twice with the same id");
    if (error !== undefined && error !== null) answers.set(call, { error: readError(error), endpoint });
    else if (result !== undefined) answers.set(call, { result, endpoint });
  }
  if (answers.size !== calls.length) throw new Error("left a call of the batch unanswered");
  return answers;
}

/** @throws Error when it is not a JSON array; {@link BatchRefused} when it is an error instead. */
function readArray(text: string): readonly unknown[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text.
    throw new Error("answered with malformed JSON");
  }
  if (Array.isArray(parsed)) return parsed;
  const { error } = membersOf(parsed);
  if (error === undefined || error === null)
    throw new Error("answered a batch of JSON-RPC calls with neither a list of answers nor an error");
  throw new BatchRefused(readError(error));
}

/** An error in one line, for operators. */
export function describeError({ code, message }: RpcError): string {
  return `JSON-RPC error ${code ?? "without code"}: ${message}`;
}

function readError(error: unknown): RpcError {
  if (!isObject(error)) return { code: undefined, message: String(error), data: undefined };
  const { code, message, data } = error;
  return {
    code: typeof code === "number" ? code : undefined,
    message: typeof message === "string" ? message : "",
    data,
  };
}

/** Anything shorter in a URL is a version or a chain's name, not a key. */
const shortestSecret = 8;

/**
 * Makes a function that removes what an RPC URL may keep secret (keys in path, query, user or host name) from
 * texts of others, such as a provider's error messages, which sometimes quote the URL.
 */
export function createRedactor(urls: readonly URL[]): (text: string) => string {
  const secrets = urls
    .flatMap((url) => [
      url.href,
      url.host,
      url.hostname,
      url.username,
      url.password,
      ...url.pathname.split("/"),
      ...url.searchParams.values(),
    ])
    .filter((secret) => secret.length >= shortestSecret)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((redacted, secret) => redacted.replaceAll(secret, "…"), text);
}
