import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

test("work is done one piece after the other, in the order of the calls, whatever becomes of each", async () => {
  const inTurn = createTurns();
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
