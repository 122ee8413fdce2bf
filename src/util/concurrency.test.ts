import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSerialQueue, padded, type TogetherOptions, together } from "./concurrency.ts";

/** A function that notes the pieces of work it was given, and doubles each number. */
function createDoubling(options: Partial<TogetherOptions<number>> = {}) {
  const pieces: (readonly number[])[] = [];
  const double = together(
    async (items: readonly number[]) => {
      pieces.push(items);
      await setImmediate();
      if (items.includes(13)) throw new Error("unlucky");
      return items.map((item) => item * 2);
    },
    { most: 4, ...options },
  );
  return { pieces, double };
}

test("what is asked for at the same time is done together, and each gets its own result", async () => {
  const { pieces, double } = createDoubling();
  expect(await Promise.all([1, 2, 3, 4, 5, 6, 7].map(double))).toEqual([2, 4, 6, 8, 10, 12, 14]);
  expect(pieces).toEqual([[1, 2, 3, 4], [5, 6], [7]]);
});

test("one alone waits for nothing", async () => {
  const { pieces, double } = createDoubling();
  expect(await double(1)).toBe(2);
  expect(await double(2)).toBe(4);
  expect(pieces).toEqual([[1], [2]]);
});

test("what comes with the next turns of the event loop comes along", async () => {
  const { pieces, double } = createDoubling();
  const first = double(1);
  await setImmediate();
  const second = double(2);
  expect(await Promise.all([first, second])).toEqual([2, 4]);
  expect(pieces).toEqual([[1, 2]]);
});

test("while much is under way, the rest waits, and nothing is forgotten", async () => {
  const { pieces, double } = createDoubling();
  const items = Array.from({ length: 50 }, (_, index) => index + 20);
  expect(await Promise.all(items.map(double))).toEqual(items.map((item) => item * 2));
  expect(pieces.flat().sort()).toEqual(items);
});

test("items of one key never meet in one piece of work", async () => {
  const { pieces, double } = createDoubling({ keyOf: (item) => `${item % 2}` });
  expect(await Promise.all([1, 3, 2].map(double))).toEqual([2, 6, 4]);
  expect(pieces).toEqual([[1, 2], [3]]);
});

test("work that fails fails for those in it, and for no others", async () => {
  const { double } = createDoubling();
  const results = await Promise.allSettled([13, 1, 2, 3, 4].map(double));
  expect(results.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 4 }, () => "rejected"),
    "fulfilled",
  ]);
});

test("work that takes any number is done by one piece after the other, if so wanted", async () => {
  const { pieces, double } = createDoubling({ anyNumber: true, mostUnderWay: 1 });
  const first = double(1);
  await setImmediate();
  await setImmediate();
  expect(await Promise.all([first, ...[2, 3, 4].map(double)])).toEqual([2, 4, 6, 8]);
  expect(pieces).toEqual([[1], [2, 3, 4]]);
});

test("a list is padded to a length of which there are few", () => {
  expect([[1], [1, 2], [1, 2, 3], [1, 2, 3, 4, 5]].map(padded)).toEqual([
    [1],
    [1, 2],
    [1, 2, 3, 3],
    [1, 2, 3, 4, 5, 5, 5, 5],
  ]);
});

test("work is done one piece after the other, in the order of the calls, whatever becomes of each", async () => {
  const inTurn = createSerialQueue();
  const done: number[] = [];
  const work = (number: number, ms: number) => async () => {
    await sleep(ms);
    done.push(number);
    if (number === 2) throw new Error("the second fails");
    return number;
  };
  const [first, second, third] = [inTurn(work(1, 20)), inTurn(work(2, 5)), inTurn(work(3, 0))];
  await expect(second).rejects.toThrow("the second fails");
  expect(await Promise.all([first, third])).toEqual([1, 3]);
  expect(done).toEqual([1, 2, 3]);
});
