/** Writes that must reach the database sometime. One that fails is tried again when the database is back. */
export type RetryQueue = {
  /** Does the work now. When it fails, this throws, and the work stays queued under its name, which queues one at most. */
  run(name: string, work: () => Promise<void>): Promise<void>;
  /** Drops queued work that has been overtaken. */
  forget(name: string): void;
  /** Does what is queued, oldest first, until something fails. Called on a timer. */
  drain(): Promise<void>;
};

/**
 * Makes a queue of writes that failed. Without it, a lease whose release failed would be renewed together with the
 * others for as long as the process lives.
 */
export function createRetryQueue(): RetryQueue {
  const queued = new Map<string, () => Promise<void>>();
  async function run(name: string, work: () => Promise<void>): Promise<void> {
    queued.set(name, work);
    await work();
    if (queued.get(name) === work) queued.delete(name);
  }
  return {
    run,
    forget: (name) => void queued.delete(name),
    async drain() {
      try {
        for (const [name, work] of [...queued]) await run(name, work);
      } catch {
        // Reported when it was first tried, and queued still.
      }
    },
  };
}
