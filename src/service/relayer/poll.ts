/** How often to look, until when, and what ends it early. */
export type PollOptions = {
  /** Milliseconds between two looks. */
  every: number | (() => number);
  /** Whether the time is over; asked after each look that found nothing. Without it there is no limit. */
  until?: () => boolean;
  signal?: AbortSignal;
};

/**
 * Looks again and again until there is something to see. Gives what the look gave; undefined when the time was over, or
 * the signal aborted, first. The first look is at once, and one that throws ends it.
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { every, until = () => false, signal }: PollOptions,
): Promise<T | undefined> {
  for (;;) {
    const found = await look();
    if (found !== undefined || until() || signal?.aborted) return found;
    await sleep(typeof every === "number" ? every : every(), signal);
    if (signal?.aborted) return undefined;
  }
}

/** Resolves after so many milliseconds, or when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.resolve();
  const wake = () => resolve();
  const timer = setTimeout(wake, ms);
  signal?.addEventListener("abort", wake);
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", wake);
  });
}

/** The older something is, the longer are the pauses between two tries: this part of its age … */
const pausePart = 1 / 8;
/** … and at most so long, in milliseconds. */
const longestPauseMs = 6 * 60 * 60 * 1000;

/** Milliseconds until the next try, for something that has gone on for `ageMs`. */
export function growingPause(ageMs: number, shortestMs: number): number {
  return Math.ceil(Math.min(Math.max(ageMs * pausePart, shortestMs), longestPauseMs));
}
