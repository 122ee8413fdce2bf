import { expect, test } from "vitest";
import { createTimeBudget } from "./time-budget.ts";

/** How many of so many pieces of work, that take `tookMs` and come every `everyMs`, are done. */
function done(pieces: number, { tookMs, everyMs }: { tookMs: number; everyMs: number }): number {
  let time = 0;
  const budget = createTimeBudget({ share: 0.05, mostMs: 100, now: () => time });
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

test("work that throws is counted, and throws", () => {
  let time = 0;
  const budget = createTimeBudget({ share: 0.05, mostMs: 10, now: () => time });
  const fail = () => {
    time += 20;
    throw new RangeError("no");
  };
  expect(() => budget.spend(fail)).toThrow("no");
  expect(budget.spend(fail)).toBeUndefined();
});
