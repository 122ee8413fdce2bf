import { isObject, parseJson } from "../../util/json.ts";
/** One call of a JSON-RPC request, as it came: nothing of it is lost when it is sent on. */
export type Call = { readonly method: string; readonly params: readonly unknown[]; readonly id?: unknown };

/** One answer to a call. */
export type Answer = {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
};

/** A JSON-RPC request: its calls, and whether they came as a batch. */
export type Message = { calls: readonly Call[]; isBatch: boolean };

/** Reads a request; undefined when it is not JSON-RPC. */
export function readMessage(text: string): Message | undefined {
  const parsed = parseJson(text);
  const isBatch = Array.isArray(parsed);
  const entries: readonly unknown[] = isBatch ? parsed : [parsed];
  const calls: Call[] = [];
  for (const entry of entries) {
    if (!isObject(entry)) return undefined;
    const { method, params = [] } = entry;
    if (typeof method !== "string" || !Array.isArray(params)) return undefined;
    calls.push({ ...entry, method, params });
  }
  return { calls, isBatch };
}

/** Reads the answers to calls, in the order of the calls; undefined where there is none. */
export function readAnswers(text: string, calls: readonly Call[]): readonly (Answer | undefined)[] {
  const parsed = parseJson(text);
  const entries: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  const byId = new Map<unknown, Answer>();
  for (const entry of entries) {
    if (isObject(entry) && "id" in entry) byId.set(entry.id, entry);
  }
  return calls.map(({ id }) => byId.get(id));
}
