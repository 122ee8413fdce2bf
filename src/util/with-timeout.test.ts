import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../observe/log/logger.ts";
import { closeWithTimeout, withEitherSignal } from "./with-timeout.ts";

const untilAborted = (signal: AbortSignal) =>
  new Promise<string>((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"));
  });

test.each(["own", "shared"] as const)("the %s signal ends the work", async (which) => {
  const signals = { own: new AbortController(), shared: new AbortController() };
  const work = withEitherSignal(signals.shared.signal)(signals.own.signal, untilAborted);
  signals[which].abort();
  expect(await work).toBe("aborted");
});

test.each(["own", "shared"] as const)("the %s signal ends work that begins after it", async (which) => {
  const signals = { own: new AbortController(), shared: new AbortController() };
  signals[which].abort();
  expect(await withEitherSignal(signals.shared.signal)(signals.own.signal, untilAborted)).toBe("aborted");
});

test("one's own signal ends no other work, and none that has ended", async () => {
  const one = new AbortController();
  const together = withEitherSignal(new AbortController().signal);
  let ended: AbortSignal | undefined;
  await together(one.signal, async (signal) => {
    ended = signal;
  });
  const other = together(new AbortController().signal, async (signal) => {
    one.abort();
    return signal.aborted;
  });
  expect(await other).toBe(false);
  expect(ended?.aborted).toBe(false);
});

let log: string[];
const logger = createLogger("info", { write: (line: string) => void log.push(line) });
const giveUp = vi.fn();
beforeEach(() => {
  log = [];
  giveUp.mockReset();
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

test("a service that ends is left to end", async () => {
  await closeWithTimeout({ close: async () => {} }, { logger, timeoutMs: 30_000, giveUp });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(giveUp).not.toHaveBeenCalled();
  expect(log).toEqual([]);
});

test("one that does not is ended by force after 30 s, and it is said", async () => {
  void closeWithTimeout({ close: () => new Promise(() => {}) }, { logger, timeoutMs: 30_000, giveUp });
  await vi.advanceTimersByTimeAsync(29_999);
  expect(giveUp).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(giveUp).toHaveBeenCalledOnce();
  expect(JSON.parse(log[0] ?? "")).toMatchObject({
    level: 60,
    seconds: 30,
    msg: "the service did not shut down in time; the process is ended",
  });
});
