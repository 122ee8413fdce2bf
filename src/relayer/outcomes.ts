import type { Hex } from "../protocol/hex.ts";

/**
 * Tells waiting requests that a settlement has concluded. The ledger stays the only record: what is announced here
 * is that it is worth reading again.
 */
export type Outcomes = {
  announce(ids: readonly Hex[]): void;
  /** Resolves at the next announcement of the id, or after `timeoutMs`, whichever comes first. */
  next(id: Hex, timeoutMs: number): Promise<void>;
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
    next(id, timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wakers = waiting.get(id) ?? new Set();
      waiting.set(id, wakers.add(resolve));
      const timer = setTimeout(resolve, timeoutMs);
      return promise.finally(() => {
        clearTimeout(timer);
        wakers.delete(resolve);
        if (wakers.size === 0) waiting.delete(id);
      });
    },
  };
}
