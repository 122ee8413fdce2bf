/** Knows what is under way, so that it can be waited for before what it needs is taken away. */
type Pending = {
  /** The same work, known while it is under way. */
  track<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>;
  /** Resolves when nothing is under way that had begun by now, whatever came of it. */
  settled(): Promise<void>;
};

export function createPending(): Pending {
  const underWay = new Set<Promise<unknown>>();
  return {
    track:
      (work) =>
      (...args) => {
        const begun = work(...args);
        underWay.add(begun);
        const end = () => underWay.delete(begun);
        begun.then(end, end);
        return begun;
      },
    async settled() {
      await Promise.allSettled(underWay);
    },
  };
}
