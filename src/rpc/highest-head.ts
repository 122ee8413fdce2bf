/** The highest block that any endpoint of a network showed: what an answer must not fall far behind. */
export type HighestHead = {
  /** Undefined before anything was seen, and when it was long ago. */
  number(): bigint | undefined;
  saw(number: bigint): void;
};

/**
 * It never goes down while anybody confirms it, so that no answer is based on a chain that is older than that of
 * an answer before. It is forgotten `rememberMs` after it was last seen, because there is a chain that did go back:
 * one that was reset, or rolled back by its operators.
 */
export function createHighestHead(options: { now: () => number; rememberMs: number }): HighestHead {
  const { now, rememberMs } = options;
  let highest: { number: bigint; seenAt: number } | undefined;

  function current(): bigint | undefined {
    return highest !== undefined && now() - highest.seenAt < rememberMs ? highest.number : undefined;
  }

  return {
    number: current,
    saw(number) {
      if (number >= (current() ?? 0n)) highest = { number, seenAt: now() };
    },
  };
}
