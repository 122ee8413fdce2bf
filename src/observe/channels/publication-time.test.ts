import { afterEach, expect, test, vi } from "vitest";
import { publicationTime } from "./publication-time.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("what happens within one millisecond keeps its order", () => {
  vi.useFakeTimers({ now: 2_000_000_000_000 });
  const times = Array.from({ length: 500 }, publicationTime);
  expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  expect(Math.floor(times.at(-1) ?? 0)).toBe(2_000_000_000_000);
});

test("a clock that is set right by an hour does not stop the times", () => {
  vi.useFakeTimers({ now: 2_000_000_000_000 });
  publicationTime();
  vi.setSystemTime(2_000_000_000_000 - 3_600_000);
  expect(publicationTime()).toBe(2_000_000_000_000 - 3_600_000);
});
