import type { RetryQueue } from "./retry-queue.ts";

/**
 * Successes that this process has handed over and the database has not recorded yet. While the database cannot be
 * reached their leases run out, so that before a right is given anew, what is known here to be delivered is recorded.
 */
export type Undelivered = {
  /** Records a delivery, which ends the rights with these names. It is tried again, under `work`, when this throws. */
  record(names: readonly string[], work: string, deliver: () => Promise<void>): Promise<void>;
  /** Records the delivery that ends the right with this name, if there is one. Throws when that cannot be done. */
  catchUp(name: string): Promise<void>;
};

export function createUndelivered(retryQueue: RetryQueue): Undelivered {
  const recordings = new Map<string, () => Promise<void>>();
  return {
    record(names, work, deliver) {
      const recording = () =>
        retryQueue.run(work, async () => {
          await deliver();
          for (const name of names) if (recordings.get(name) === recording) recordings.delete(name);
        });
      for (const name of names) recordings.set(name, recording);
      return recording();
    },
    async catchUp(name) {
      await recordings.get(name)?.();
    },
  };
}
