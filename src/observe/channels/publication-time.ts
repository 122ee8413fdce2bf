/** What follows within one millisecond is this much later than what was before. */
const step = 1 / 1_024;

let last = 0;

/**
 * Unix milliseconds, each later than the ones given before: what several modules note of one payment can be put in its
 * order by time. Where the clock of the machine is set back by more than a second, it goes back too.
 */
export function publicationTime(): number {
  const now = Date.now();
  last = now > last || now < last - 1_000 ? now : last + step;
  return last;
}
