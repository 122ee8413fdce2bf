import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../observe/log/logger.ts";
import { closeWithTimeout, createTimeBudget, poll, withEitherSignal } from "./waiting.ts";

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

/** How many of so many pieces of work, that take `tookMs` and come every `everyMs`, are done. */
function done(pieces: number, { tookMs, everyMs }: { tookMs: number; everyMs: number }): number {
  let time = 0;
  const budget = createTimeBudget({ share: 0.05, mostMs: 100, now: () => time, cpu: () => time });
  let count = 0;
  for (let piece = 0; piece < pieces; piece++) {
    time = Math.max(time, piece * everyMs);
    const result = budget.spend(() => {
      time += tookMs;
      return true;
    });
    if (result === true) count++;
  }
  return count;
}

test("work that is rare, or a burst of it, is all done", () => {
  expect(done(1_000, { tookMs: 4, everyMs: 100 })).toBe(1_000);
  expect(done(25, { tookMs: 4, everyMs: 0 })).toBe(25);
});

test("of work without end, a burst and then its share is done", () => {
  // 10 s of it: 100 ms at once, and a twentieth of the time.
  const count = done(10_000, { tookMs: 4, everyMs: 1 });
  expect(count * 4).toBeGreaterThan(550);
  expect(count * 4).toBeLessThan(620);
});

test("a piece that takes far too long is made up for before the next", () => {
  // 200 ms of it leave a debt of 100, which a twentieth of the time has paid after more than two seconds.
  expect(done(4, { tookMs: 200, everyMs: 1_000 })).toBe(2);
});

test("what other processes take while the work is under way is not counted", () => {
  let time = 0;
  const budget = createTimeBudget({ share: 0.05, mostMs: 10, now: () => time, cpu: () => 0 });
  const wait = () => (time += 1_000);
  expect([budget.spend(wait), budget.spend(wait), budget.spend(wait)]).toEqual([1_000, 2_000, 3_000]);
});

test("work that throws is counted, and throws", () => {
  let time = 0;
  const budget = createTimeBudget({ share: 0.05, mostMs: 10, now: () => time, cpu: () => time });
  const fail = () => {
    time += 20;
    throw new RangeError("no");
  };
  expect(() => budget.spend(fail)).toThrow("no");
  expect(budget.spend(fail)).toBeUndefined();
});

describe("poll", () => {
  beforeEach(() => void vi.useRealTimers());

  test("looks at once, and again until there is something", async () => {
    const look = vi.fn<() => Promise<string | undefined>>();
    look.mockResolvedValueOnce(undefined).mockResolvedValueOnce(undefined).mockResolvedValueOnce("found");
    expect(await poll(look, { every: 1 })).toBe("found");
    expect(look).toHaveBeenCalledTimes(3);
  });

  test("gives up when the time is over, after one look at least", async () => {
    const look = vi.fn(async () => undefined);
    expect(await poll(look, { every: 60_000, until: () => true })).toBeUndefined();
    expect(look).toHaveBeenCalledTimes(1);
  });

  test("a signal ends a pause at once, and no look follows it", async () => {
    const look = vi.fn(async () => undefined);
    const leaving = new AbortController();
    const polled = poll(look, { every: 60_000, signal: leaving.signal });
    await expect.poll(() => look.mock.calls.length).toBe(1);
    leaving.abort();
    expect(await polled).toBeUndefined();
    expect(look).toHaveBeenCalledTimes(1);
  });

  test("a look that throws ends it", async () => {
    const failing = () => Promise.reject(new Error("the ledger is away"));
    await expect(poll(failing, { every: 1 })).rejects.toThrow("the ledger is away");
  });
});
