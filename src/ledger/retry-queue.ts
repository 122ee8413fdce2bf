// Imported, not global: a test that installs fake timers must not stop its database.
import { setTimeout as delay } from "node:timers/promises";

/** Writes that must reach the database sometime. One that fails is tried again when the database is back. */
export type RetryQueue = {
  /** Does the work now. When it fails, this throws, and the work stays queued under its name, which queues one at most. */
  run(name: string, work: () => Promise<void>): Promise<void>;
  /** Queues work without a try of its own, for a database that has just failed. */
  add(name: string, work: () => Promise<void>): void;
  /** Drops queued work that has been overtaken. */
  forget(name: string): void;
  /** Does what is queued, but for what is being done already; what fails stays queued. Called on a timer. */
  drain(): Promise<void>;
  /** Drains until nothing is queued, for `forMs` at most, whatever the database does. Gives how much is left. */
  finish(forMs: number): Promise<number>;
};

/** Between two rounds of those that end the queue, in milliseconds. */
const finishPauseMs = 100;

/**
 * Makes a queue of writes that failed. Without it, a lease whose release failed would be renewed together with the
 * others for as long as the process lives.
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
   * All at once: writes of one kind share their statements, and none waits for another. What fails was reported when it
   * was first tried.
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
        // A database that does not answer would hold it up for longer.
        const leftMs = Math.max(0, until - performance.now());
        await Promise.race([drain(), delay(leftMs, undefined, { ref: false })]);
        if (queued.size === 0 || performance.now() >= until) return queued.size;
        await delay(finishPauseMs);
      }
    },
  };
}
