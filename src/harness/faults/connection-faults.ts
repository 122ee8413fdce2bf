import { type ConnectionFaultSpec, matcherOf } from "./fault-spec.ts";

export type ConnectionFault = {
  readonly spec: ConnectionFaultSpec;
  /** How often it has hit: calls for faults of single calls, HTTP requests for the others. */
  readonly fired: number;
  /** Aborts when the fault is removed: what it holds back goes on. */
  readonly removed: AbortSignal;
};

/** A fault that hits an HTTP request, and which of its calls by their places in the batch. */
export type Hit = { fault: ConnectionFault; calls: ReadonlySet<number> };

/** The faults of one connection, in the order in which they were set. */
export type ConnectionFaults = {
  /** Whether any of them may still hit. */
  readonly armed: boolean;
  /** `onHit` gets the methods of the calls that it hits. */
  add(spec: ConnectionFaultSpec, onHit?: (methods: readonly string[]) => void): ConnectionFault;
  remove(fault: ConnectionFault): void;
  /** Counts an HTTP request with calls of these methods; gives what hits it. */
  take(methods: readonly string[]): readonly Hit[];
};

/** Faults of these kinds hit single calls of a batch; all others the HTTP request as a whole. */
const ofSingleCalls: ReadonlySet<ConnectionFaultSpec["kind"]> = new Set([
  "error",
  "stale-head",
  "receipt-of-another",
]);

export function createConnectionFaults(): ConnectionFaults {
  const active = new Map<ConnectionFault, (methods: readonly string[]) => ReadonlySet<number>>();
  const spent = new Set<ConnectionFault>();
  const removals = new Map<ConnectionFault, AbortController>();

  return {
    get armed() {
      return active.size > spent.size;
    },

    add(spec, onHit) {
      const removal = new AbortController();
      const { nth = 1, times = spec.nth === undefined ? Number.POSITIVE_INFINITY : 1 } = spec;
      const matches = matcherOf(spec.method);
      let seen = 0;
      const fault = { spec, fired: 0, removed: removal.signal };
      const isHit = () => ++seen >= nth && seen < nth + times;
      const count = (methods: readonly string[]): ReadonlySet<number> => {
        const matching = methods.flatMap((method, index) => (matches(method) ? [index] : []));
        const hit = ofSingleCalls.has(spec.kind)
          ? matching.filter(isHit)
          : matching.length > 0 && isHit()
            ? matching
            : [];
        if (hit.length > 0) {
          fault.fired += ofSingleCalls.has(spec.kind) ? hit.length : 1;
          onHit?.(hit.flatMap((index) => methods[index] ?? []));
        }
        if (seen >= nth + times - 1) spent.add(fault);
        return new Set(hit);
      };
      active.set(fault, count);
      removals.set(fault, removal);
      return fault;
    },

    remove(fault) {
      active.delete(fault);
      spent.delete(fault);
      removals.get(fault)?.abort();
      removals.delete(fault);
    },

    take(methods) {
      const hits: Hit[] = [];
      for (const [fault, count] of active) {
        const calls = count(methods);
        if (calls.size > 0) hits.push({ fault, calls });
      }
      return hits;
    },
  };
}
