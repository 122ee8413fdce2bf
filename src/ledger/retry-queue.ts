// Imported, not global, so that a test with fake timers does not stop its database.
import { setTimeout as delay } from "node:timers/promises";

/** A queue for writes that must reach the database eventually. Failed ones are retried when the database is back. */
export type RetryQueue = {
  /** Runs the work now. If it fails, this throws and the work stays queued under its name, replacing earlier work. */
  run(name: string, work: () => Promise<void>): Promise<void>;
  /** Queues work without trying it first, for use when the database has just failed. */
  add(name: string, work: () => Promise<void>): void;
  /** Drops queued work that is obsolete. */
  forget(name: string): void;
  /** Runs the queued work, except what is already running; failed work stays queued. Called on a timer. */
  drain(): Promise<void>;
  /** Drains until the queue is empty, for at most `forMs`, whatever the database does. Returns the number left. */
  finish(forMs: number): Promise<number>;
};

/** The pause between two rounds of `finish`, in milliseconds. */
const finishPauseMs = 100;

/**
 * Creates a queue of failed writes. Without it, a lease whose release failed would be renewed together with the others
 * as long as the process lives.
 */
export function createRetryQueue(): RetryQueue {
  const queued = new Map<string, () => Promise<void>>();
  const underWay = new Set<() => Promise<void>>();
  async function run(name: string, work: () => Promise<void>): Promise<void> {
    queued.set(name, work);
    underWay.add(work);
    try {
      await work();
    } finally {
      underWay.delete(work);
    }
    if (queued.get(name) === work) queued.delete(name);
  }
  /**
   * Runs everything at once: writes of one kind share their statements, and none waits for another. Failures are
   * ignored; they were reported at the first try.
   */
  async function drain(): Promise<void> {
    const idle = [...queued].filter(([, work]) => !underWay.has(work));
    await Promise.allSettled(idle.map(([name, work]) => run(name, work)));
  }
  return {
    run,
    add: (name, work) => void queued.set(name, work),
    forget: (name) => void queued.delete(name),
    drain,
    async finish(forMs) {
      const until = performance.now() + forMs;
      for (;;) {
        // Otherwise a database that does not answer would delay the end.
        const leftMs = Math.max(0, until - performance.now());
        await Promise.race([drain(), delay(leftMs, undefined, { ref: false })]);
        if (queued.size === 0 || performance.now() >= until) return queued.size;
        await delay(finishPauseMs);
      }
    },
  };
}
