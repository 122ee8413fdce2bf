/** Lets work be done in this thread as long as it takes no more than its share of the time. */
export type TimeBudget = {
  /** What the work gives; undefined, with nothing done, while the budget is used up. */
  spend<T>(work: () => T): T | undefined;
};

/**
 * Makes a budget of time for work that must not hold up what else the process does.
 *
 * @param share of all time, that the work may take in the long run; 0.05 is a twentieth
 * @param mostMs that it may take at once; the last piece of work may go beyond, and is made up for by waiting
 */
export function createTimeBudget({
  share,
  mostMs,
  now = () => performance.now(),
}: {
  share: number;
  mostMs: number;
  now?: () => number;
}): TimeBudget {
  let leftMs = mostMs;
  let countedAt = now();
  return {
    spend(work) {
      const start = now();
      leftMs = Math.min(mostMs, leftMs + (start - countedAt) * share);
      countedAt = start;
      if (leftMs <= 0) return undefined;
      try {
        return work();
      } finally {
        leftMs -= now() - start;
      }
    },
  };
}
