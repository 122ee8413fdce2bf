import { expect, test, vi } from "vitest";
import { poll } from "./poll.ts";

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
