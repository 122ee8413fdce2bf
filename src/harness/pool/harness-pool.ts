import { KitError } from "../../util/errors.ts";
import type { RunningHarness } from "../run/running-harness.ts";

/** What a pool does with its harnesses. */
export type Poolable = Pick<RunningHarness, "reset" | "close" | "onFailure">;

/** A harness for one test alone, reset since the last one. */
export type PoolLease<H extends Poolable> = {
  readonly harness: H;
  /** Gives the harness back. Can be called again. */
  release(): void;
};

/**
 * Harnesses that are leased to one test at a time.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | starting | counts against the most, and cannot be leased | `start` |
 * | free | as new | its reset |
 * | leased | of one test alone, until it gives it back or its process is gone | the holder of the lease |
 * | resetting | given back, and cannot be leased | its reset; when that fails the harness is ended |
 */
export type HarnessPool<H extends Poolable> = {
  /** Waits for a free harness; starts another one as long as there are fewer than the most. */
  lease(signal: AbortSignal): Promise<PoolLease<H>>;
  /** Ends all harnesses, and rejects the leases that are waited for. */
  close(): Promise<void>;
};

type Waiting<H extends Poolable> = { resolve(lease: PoolLease<H>): void; reject(error: unknown): void };

/** A pool of at most `most` harnesses, which `start` starts. */
export function createHarnessPool<H extends Poolable>({
  start,
  most,
}: {
  start: () => Promise<H>;
  most: number;
}): HarnessPool<H> {
  const all = new Set<H>();
  const free: H[] = [];
  const waiting: Waiting<H>[] = [];
  const starting = new Set<Promise<void>>();
  let closed = false;

  /** Hands out what is free, and starts what is missing. */
  function serve(): void {
    while (free.length > 0 && waiting.length > 0) {
      const harness = free.shift();
      if (harness !== undefined) waiting.shift()?.resolve(leaseOf(harness));
    }
    while (!closed && starting.size < waiting.length && all.size + starting.size < most) {
      const started = startOne().finally(() => {
        starting.delete(started);
        serve();
      });
      starting.add(started);
    }
  }

  async function startOne(): Promise<void> {
    try {
      const harness = await start();
      all.add(harness);
      free.push(harness);
      harness.onFailure(() => void discard(harness));
    } catch (error) {
      // Whatever keeps one from starting most likely keeps all of them.
      for (const { reject } of waiting.splice(0)) reject(error);
    }
  }

  function leaseOf(harness: H): PoolLease<H> {
    let held = true;
    return {
      harness,
      release() {
        if (!held) return;
        held = false;
        void giveBack(harness);
      },
    };
  }

  /** Resets at once, and not when the next one comes: it need not wait then. */
  async function giveBack(harness: H): Promise<void> {
    if (closed || !all.has(harness)) return;
    try {
      await harness.reset();
      if (all.has(harness)) free.push(harness);
    } catch {
      await discard(harness);
    }
    serve();
  }

  /** A harness with a dead node, or one that cannot be reset, is of no use any more. */
  async function discard(harness: H): Promise<void> {
    if (!all.delete(harness)) return;
    const index = free.indexOf(harness);
    if (index !== -1) free.splice(index, 1);
    await harness.close().catch(() => {});
    serve();
  }

  return {
    lease(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<PoolLease<H>>();
      if (closed) {
        reject(new KitError("The pool of harnesses was closed"));
        return promise;
      }
      const entry: Waiting<H> = { resolve, reject };
      waiting.push(entry);
      const leave = () => {
        const index = waiting.indexOf(entry);
        if (index === -1) return;
        waiting.splice(index, 1);
        reject(new KitError("The lease is not wanted any more"));
      };
      signal.addEventListener("abort", leave);
      if (signal.aborted) leave();
      serve();
      return promise.finally(() => signal.removeEventListener("abort", leave));
    },

    async close() {
      closed = true;
      for (const { reject } of waiting.splice(0)) reject(new KitError("The pool of harnesses was closed"));
      await Promise.all(starting);
      await Promise.all([...all].map((harness) => harness.close()));
      all.clear();
    },
  };
}
