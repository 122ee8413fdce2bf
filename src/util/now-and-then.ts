/**
 * Makes a function that runs what it is given once a minute at most: what is repeated meanwhile is no news.
 *
 * @example
 * const nowAndThen = createNowAndThen();
 * nowAndThen(() => log.warn("somebody tries https at an http port"));
 */
export function createNowAndThen(quietMs = 60_000): (run: () => void) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (run) => {
    const now = performance.now();
    if (now - last < quietMs) return;
    last = now;
    run();
  };
}
