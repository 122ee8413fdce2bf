/** Reproducible random choices: the same seed gives the same ones. */
export type Random = {
  /** Print it, so that a failure can be repeated with `TEST_SEED`. */
  readonly seed: number;
  /** A whole number, both ends included. */
  between(from: number, to: number): number;
  pick<T>(items: readonly [T, ...T[]]): T;
  shuffle<T>(items: readonly T[]): T[];
};

export function createRandom(
  seed = Number(process.env.TEST_SEED ?? Math.trunc(Math.random() * 2 ** 32)),
): Random {
  let state = seed;

  /** mulberry32. */
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  const between = (from: number, to: number) => from + Math.trunc(next() * (to - from + 1));
  return {
    seed,
    between,
    pick: (items) => items[between(0, items.length - 1)] ?? items[0],
    shuffle: (items) =>
      items
        .map((item) => ({ item, place: next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ item }) => item),
  };
}
