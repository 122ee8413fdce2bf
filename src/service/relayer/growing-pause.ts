/** The older something is, the longer are the pauses between two tries: this part of its age … */
const pausePart = 1 / 8;
/** … and at most so long, in milliseconds. */
const longestMs = 6 * 60 * 60 * 1000;

/** Milliseconds until the next try, for something that has gone on for `ageMs`. */
export function growingPause(ageMs: number, shortestMs: number): number {
  return Math.ceil(Math.min(Math.max(ageMs * pausePart, shortestMs), longestMs));
}
