import type { Hex } from "../../protocol/hex.ts";

/**
 * Tells waiting requests that a settlement has concluded. The ledger stays the only record: what is announced here
 * is that it is worth reading again.
 */
export type Outcomes = {
  announce(ids: readonly Hex[]): void;
  /** Resolves at the next announcement of the id, after `timeoutMs`, or when `signal` aborts. */
  next(id: Hex, timeoutMs: number, signal: AbortSignal): Promise<void>;
};

/** Outcomes of this process. Other instances' conclusions are seen by reading the ledger when `next` times out. */
export function createOutcomes(): Outcomes {
  const waiting = new Map<Hex, Set<() => void>>();
  return {
    announce(ids) {
      for (const id of ids) {
        for (const wake of waiting.get(id) ?? []) wake();
      }
    },
    next(id, timeoutMs, signal) {
      if (signal.aborted) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      const wakers = waiting.get(id) ?? new Set();
      waiting.set(id, wakers.add(resolve));
      const timer = setTimeout(resolve, timeoutMs);
      const leave = () => resolve();
      signal.addEventListener("abort", leave);
      return promise.finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
        wakers.delete(resolve);
        if (wakers.size === 0) waiting.delete(id);
      });
    },
  };
}
