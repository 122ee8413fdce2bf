import { monitorEventLoopDelay } from "node:perf_hooks";

/** How late the event loop is. */
export type EventLoopLag = {
  /** Milliseconds by which half of the turns of the last second, or of the last long one, were late. */
  readonly ms: number;
  stop(): void;
};

/** How often the loop's turns are measured, and the time they take when nothing holds them up. */
const resolutionMs = 20;

/**
 * Measures the delay of the event loop by its median: one long garbage collection is no reason to refuse requests, many
 * slow turns are.
 */
export function watchEventLoop(sampleMs = 1_000): EventLoopLag {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let ms = 0;
  const timer = setInterval(() => {
    if (delay.count > 0) ms = Math.max(0, delay.percentile(50) / 1e6 - resolutionMs);
    delay.reset();
  }, sampleMs).unref();

  return {
    get ms() {
      return ms;
    },
    stop() {
      clearInterval(timer);
      delay.disable();
    },
  };
}
