import { expect, test, vi } from "vitest";
import { defineChannel } from "./channel.ts";

test("a message is not even made while there is no subscriber", () => {
  const channel = defineChannel<{ n: number }>("test-unheard");
  const describe = vi.fn(() => ({ n: 1 }));
  channel.publish(describe);
  expect(describe).not.toHaveBeenCalled();
});

test("every subscriber gets the message at once, until it unsubscribes", () => {
  const channel = defineChannel<{ n: number }>("test-heard");
  const [first, second]: [number[], number[]] = [[], []];
  const unsubscribe = channel.subscribe(({ n }) => first.push(n));
  channel.subscribe(({ n }) => second.push(n));
  channel.publish(() => ({ n: 1 }));
  unsubscribe();
  channel.publish(() => ({ n: 2 }));
  expect({ first, second }).toEqual({ first: [1], second: [1, 2] });
});

test("channels carry the name of the project, for subscribers that import nothing of it", () => {
  expect(defineChannel("test-named").name).toBe("x402-facilitator-kit:test-named");
});
