import type { Hex } from "../../protocol/hex.ts";
import { isObject, membersOf } from "../../util/json.ts";

/** A JSON-RPC call. If several callers send the same object at once, it goes out once. */
export type RpcCall = {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * The settlement's id or the transaction's hash that the call is for. Only observers see it, not nodes. Undefined
   * for calls that belong to whatever they are sent with.
   */
  readonly about?: Hex | undefined;
};

/** The calls of one `ask` or `send`. Concurrent questions share an HTTP request. */
export type Question = readonly RpcCall[];

/** The error that a node returns instead of a result. `message` is for people; no code reads it. */
export type RpcError = { code: number | undefined; message: string; data: unknown };

export type RpcAnswer =
  | { readonly result: unknown; readonly error?: undefined }
  | { readonly result?: undefined; readonly error: RpcError };

/** An answer with the label of the endpoint that gave it. */
export type EndpointAnswer = RpcAnswer & { readonly endpoint: string };

/** A single endpoint of a network; its calls are answered by it or not at all. */
export type RpcEndpoint = {
  /** The label: its position in the configuration, counted from 1. */
  readonly endpoint: string;
  /**
   * Reads, as {@link Rpc.ask} does.
   *
   * @throws UndeterminedError also, and at once, while the endpoint is paused after a failure.
   */
  ask(calls: readonly RpcCall[]): Promise<readonly EndpointAnswer[]>;
};

/** Reads from a chain. */
export type RpcReader = {
  /**
   * Reads. The calls may be repeated, even at another node, and share a request with other callers. Returns the
   * answers in the order of the calls; a node's error for a single call is an answer. A caller that cannot use such an
   * answer asks again with the number of times it was `refused`: from the second time on, other nodes are asked first.
   *
   * @throws UndeterminedError when there is no answer, or none that can be parsed.
   */
  ask(calls: readonly RpcCall[], refused?: number): Promise<readonly EndpointAnswer[]>;
};

/**
 * A node, or several that stand in for one another. The calls of one `ask` or `send` always go to the same node, and
 * in one HTTP request if they fit in a batch, so that their answers are consistent.
 */
export type Rpc = RpcReader & {
  /**
   * Writes, in the given order. Resolves when a node has answered, whatever it says about the single calls; if it does
   * not answer, the next node gets the very same calls. With `everywhere`, all healthy nodes get them at once, for
   * transactions that were sent before without success.
   *
   * @throws UndeterminedError when none answered: the calls may or may not have arrived.
   */
  send(calls: readonly RpcCall[], options?: { everywhere?: boolean }): Promise<void>;
  /** Returns each endpoint, in the order that {@link ask} currently prefers; always as many as are configured. */
  endpoints(): readonly RpcEndpoint[];
  /** Ends running calls as undetermined, and stops all background work. No calls are possible afterwards. */
  close(): void;
};

/** JSON-RPC 2.0 batches: writing requests, and parsing responses without trusting them. */

// Ids are never reused in a process, so that a response to another request is noticed.
let nextId = 1;

/** A node answered a whole batch with one error. */
export class BatchRefused extends Error {
  override readonly name = "BatchRefused";
  readonly error: RpcError;

  constructor(error: RpcError) {
    super(`refused the batch: ${describeError(error)}`);
    this.error = error;
  }
}

/** The method and parameters of calls as JSON; serialized once, however often a call is measured and sent. */
const written = new WeakMap<RpcCall, string>();

function writeCall(call: RpcCall): string {
  const known = written.get(call);
  if (known !== undefined) return known;
  const { method, params } = call;
  const text = `"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`;
  written.set(call, text);
  return text;
}

/** Builds a batch request: its body, and the id of the first call; the others count up from there. */
export function writeBatch(calls: readonly RpcCall[]): { body: string; firstId: number } {
  const firstId = nextId;
  const body = calls.map((call) => `{"jsonrpc":"2.0","id":${nextId++},${writeCall(call)}`);
  return { body: `[${body.join(",")}]`, firstId };
}

/** The bytes around a call in a batch: the version, an id, a comma. */
const callEnvelopeBytes = 50;

/** How much a call adds to a batch, in bytes, slightly overestimated. */
export function sizeOfCall(call: RpcCall): number {
  return writeCall(call).length + callEnvelopeBytes;
}

/**
 * Parses the answers of a batch, one for each of its calls. `endpoint` is the label of the endpoint that gave them.
 *
 * @throws Error when the text is not a JSON array with exactly one answer to each call. Answers may come in any order,
 * so they are matched by id. Some nodes answer a batch with one error object ({@link BatchRefused}).
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
    // The parser's own message would quote the text.
    throw new Error("answered with malformed JSON");
  }
  if (Array.isArray(parsed)) return parsed;
  const { error } = membersOf(parsed);
  if (error === undefined || error === null)
    throw new Error("answered a batch of JSON-RPC calls with neither a list of answers nor an error");
  throw new BatchRefused(readError(error));
}

/** Describes an error in one line, for operators. */
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
 * Creates a function that removes what an RPC URL may keep secret (keys in path, query, user or host name) from
 * third-party texts, such as a provider's error messages, which sometimes quote the URL.
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
