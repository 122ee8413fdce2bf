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

test("a write that takes long holds up no other, and is not begun a second time meanwhile", async () => {
  const queue = createRetryQueue();
  let tries = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  queue.add("a slow write", () => {
    tries++;
    return promise;
  });
  const slow = queue.drain();
  let done = false;
  queue.add("another write", async () => {
    done = true;
  });
  await queue.drain();
  expect(done).toBe(true);
  expect(tries).toBe(1);
  resolve();
  await slow;
  expect(await queue.finish(0)).toBe(0);
});

test("a write that fails holds up no other", async () => {
  const queue = createRetryQueue();
  queue.add("a write that fails", () => Promise.reject(new Error("it cannot be done")));
  let done = false;
  queue.add("another write", async () => {
    done = true;
  });
  await queue.drain();
  expect(done).toBe(true);
  expect(await queue.finish(0)).toBe(1);
});
