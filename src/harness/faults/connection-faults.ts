import type { FaultHit } from "../../observe/channels/channels.ts";
import { isObject, parseJson } from "../../util/json.ts";
import { type ConnectionFaultSpec, matcherOf } from "./fault-spec.ts";

/** One call of a JSON-RPC request. Other fields are kept when it is forwarded. */
export type Call = { readonly method: string; readonly params: readonly unknown[]; readonly id?: unknown };

export type Answer = {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
};

/** A JSON-RPC request, single or batch. */
export type Message = { calls: readonly Call[]; isBatch: boolean };

/** Reads a request; undefined if it is not JSON-RPC. */
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

/** Reads the answers to calls, in the order of the calls; undefined for calls without an answer. */
export function readAnswers(text: string, calls: readonly Call[]): readonly (Answer | undefined)[] {
  const parsed = parseJson(text);
  const entries: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  const byId = new Map<unknown, Answer>();
  for (const entry of entries) {
    if (isObject(entry) && "id" in entry) byId.set(entry.id, entry);
  }
  return calls.map(({ id }) => byId.get(id));
}

export type ConnectionFault = {
  readonly spec: ConnectionFaultSpec;
  /** The number of hits: calls for faults of single calls, HTTP requests for all others. */
  readonly fired: number;
  /** True if it has hit as often as requested and will not hit again. */
  readonly usedUp: boolean;
  /** Aborts when the fault is removed, which releases everything that it holds back. */
  readonly removed: AbortSignal;
};

/** A fault that hits an HTTP request, and the indexes in the batch of the calls that it hits. */
export type Hit = { fault: ConnectionFault; calls: ReadonlySet<number> };

/** The methods that a fault hit, and all calls of the HTTP request. */
export type HitReport = Pick<FaultHit, "methods" | "calls">;

/** The faults of one connection, in the order in which they were set. */
export type ConnectionFaults = ReturnType<typeof createConnectionFaults>;

/** Faults of these kinds hit single calls of a batch; all others hit the HTTP request as a whole. */
const ofSingleCalls: ReadonlySet<ConnectionFaultSpec["kind"]> = new Set([
  "error",
  "stale-head",
  "receipt-of-another",
]);

export function createConnectionFaults() {
  const active = new Map<ConnectionFault, (calls: readonly Call[]) => ReadonlySet<number>>();
  const removals = new Map<ConnectionFault, AbortController>();
  const watchers = new Set<(calls: readonly Call[]) => void>();

  return {
    /** True if any fault may still hit, or calls are watched. */
    get armed() {
      return [...active.keys()].some(({ usedUp }) => !usedUp) || watchers.size > 0;
    },

    /** Reports HTTP requests with calls to a method, which may contain `*`, without changing them. Returns how to stop. */
    watch(method: string, onCalls: (report: HitReport) => void) {
      const matches = matcherOf(method);
      const watcher = (calls: readonly Call[]) => {
        const matching = calls.filter((call) => matches(call.method));
        if (matching.length === 0) return;
        onCalls({
          methods: matching.map((call) => call.method),
          calls: calls.map((call) => ({ params: call.params, isHit: matching.includes(call) })),
        });
      };
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },

    add(spec: ConnectionFaultSpec, onHit?: (report: HitReport) => void): ConnectionFault {
      const removal = new AbortController();
      const { nth = 1, times = spec.nth === undefined ? Number.POSITIVE_INFINITY : 1 } = spec;
      const matches = matcherOf(spec.method);
      let seen = 0;
      const fault = { spec, fired: 0, usedUp: false, removed: removal.signal };
      const isHit = () => ++seen >= nth && seen < nth + times;
      const count = (calls: readonly Call[]): ReadonlySet<number> => {
        const matching = calls.flatMap(({ method }, index) => (matches(method) ? [index] : []));
        const isOfRequest = !ofSingleCalls.has(spec.kind);
        const hit = !isOfRequest ? matching.filter(isHit) : matching.length > 0 && isHit() ? matching : [];
        if (hit.length > 0) {
          fault.fired += isOfRequest ? 1 : hit.length;
          onHit?.({
            methods: hit.flatMap((index) => calls[index]?.method ?? []),
            calls: calls.map(({ params }, index) => ({ params, isHit: isOfRequest || hit.includes(index) })),
          });
        }
        fault.usedUp = seen >= nth + times - 1;
        return new Set(hit);
      };
      active.set(fault, count);
      removals.set(fault, removal);
      return fault;
    },

    remove(fault: ConnectionFault) {
      active.delete(fault);
      removals.get(fault)?.abort();
      removals.delete(fault);
    },

    /** Counts an HTTP request with these calls and returns the faults that hit it. */
    take(calls: readonly Call[]) {
      for (const watcher of watchers) watcher(calls);
      const hits: Hit[] = [];
      for (const [fault, count] of active) {
        const hit = count(calls);
        if (hit.size > 0) hits.push({ fault, calls: hit });
      }
      return hits;
    },
  };
}
