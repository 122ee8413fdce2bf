/**
 * Makes a function that runs its argument at most once a minute: repetitions within that time are not news.
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
