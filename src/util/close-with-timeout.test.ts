import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../observe/log/logger.ts";
import { closeWithTimeout } from "./close-with-timeout.ts";

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
