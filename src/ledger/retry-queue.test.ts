import { expect, test } from "vitest";
import { createRetryQueue } from "./retry-queue.ts";

test("the end of the queue does not wait for a database that never answers", async () => {
  const queue = createRetryQueue();
  queue.add("a write", () => new Promise(() => {}));
  expect(await queue.finish(20)).toBe(1);
});

test("the end of the queue waits for writes that fail at first", async () => {
  const queue = createRetryQueue();
  let tries = 0;
  queue.add("a write", async () => {
    if (++tries < 3) throw new Error("the database cannot be reached");
  });
  expect(await queue.finish(60_000)).toBe(0);
  expect(tries).toBe(3);
});
