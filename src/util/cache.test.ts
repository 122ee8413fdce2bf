import { expect, test } from "vitest";
import { memoizeFor } from "./cache.ts";

test("loads once for all who ask within the time, and again afterwards", async () => {
  let time = 0;
  let loads = 0;
  const read = memoizeFor(async () => ++loads, { maxAgeMs: 100, now: () => time });
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  time = 99;
  expect(await read()).toBe(1);
  time = 100;
  expect(await read()).toBe(2);
});

test("a load that takes longer than the time is waited for, not joined by a second one", async () => {
  let time = 0;
  const pending: (() => void)[] = [];
  const read = memoizeFor(() => new Promise<void>((resolve) => pending.push(resolve)), {
    maxAgeMs: 100,
    now: () => time,
  });
  const first = read();
  time = 5_000;
  const second = read();
  expect(pending).toHaveLength(1);
  pending[0]?.();
  await Promise.all([first, second]);
  void read();
  expect(pending).toHaveLength(2);
});

test("does not ask again at once what has just failed", async () => {
  let time = 0;
  let loads = 0;
  const read = memoizeFor(
    async () => {
      loads++;
      throw new Error("down");
    },
    { maxAgeMs: 100, now: () => time },
  );
  await expect(read()).rejects.toThrow("down");
  await expect(read()).rejects.toThrow("down");
  expect(loads).toBe(1);
  time = 100;
  await expect(read()).rejects.toThrow("down");
  expect(loads).toBe(2);
});
