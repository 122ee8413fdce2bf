import { expect, test } from "vitest";
import { createRepeats } from "./request-leases.ts";

const never = new AbortController().signal;

test("one request at a time is the first for a payment; others are for other payments", async () => {
  const repeats = createRepeats(Date.now);
  expect(await repeats.begin("a", 10, never)).toBeDefined();
  expect(await repeats.begin("b", 10, never)).toBeDefined();
  expect(await repeats.begin("a", 10, never)).toBeUndefined();
});

test("a repeat becomes the first as soon as the first has ended, and one of several does", async () => {
  const repeats = createRepeats(Date.now);
  const first = await repeats.begin("a", 0, never);
  const waiting = [1, 2, 3].map(() => repeats.begin("a", 500, never));
  first?.end();
  const began = await Promise.race(waiting);
  expect(began).toBeDefined();
  expect((await Promise.all(waiting)).filter((one) => one !== undefined)).toHaveLength(1);
});

test("a flood of repeats does not wait: each beyond the thirty-second is answered at once", async () => {
  const repeats = createRepeats(Date.now);
  const first = await repeats.begin("a", 0, never);
  const waiting = Array.from({ length: 32 }, () => repeats.begin("a", 60_000, never));
  expect(await repeats.begin("a", 60_000, never)).toBeUndefined();
  const leaving = new AbortController();
  leaving.abort();
  expect(await repeats.begin("a", 60_000, leaving.signal)).toBeUndefined();
  first?.end();
  for (let left = waiting.length; left > 0; left--) (await Promise.race(waiting.splice(0, 1)))?.end();
});
