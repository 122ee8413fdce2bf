/** Work that must be done sometime. What cannot be done now, since the database is away, is done when it is back. */
export type RetryQueue = {
  /** Does the work now; when it fails, that is told, and it is owed. There is one debt of each name. */
  pay(name: string, work: () => Promise<void>): Promise<void>;
  /** Forgets a debt that has been overtaken. */
  forget(name: string): void;
  /** Does what is owed, oldest first, as far as it goes. Called on a timer. */
  drain(): Promise<void>;
};

/**
 * Makes an account of what this process owes the database. Without it, a lease whose release failed would be renewed
 * together with the others for as long as the process lives.
 */
export function createRetryQueue(): RetryQueue {
  const owed = new Map<string, () => Promise<void>>();
  async function pay(name: string, work: () => Promise<void>): Promise<void> {
    owed.set(name, work);
    await work();
    if (owed.get(name) === work) owed.delete(name);
  }
  return {
    pay,
    forget: (name) => void owed.delete(name),
    async drain() {
      try {
        for (const [name, work] of [...owed]) await pay(name, work);
      } catch {
        // Told when it was to be paid, and owed still.
      }
    },
  };
}
