import { expect, test, vi } from "vitest";
import { defineChannel, observerFailed } from "./channels.ts";

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

test("a listener that throws ends neither the call nor the process, and is told once", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const channel = defineChannel<{ n: number }>("test-failing");
  const heard: number[] = [];
  const unsubscribes = [
    channel.subscribe(() => {
      throw new TypeError("Cannot convert object to primitive value");
    }),
    channel.subscribe(({ n }) => heard.push(n)),
  ];
  channel.publish(() => ({ n: 1 }));
  channel.publish(() => ({ n: 2 }));
  for (const unsubscribe of unsubscribes) unsubscribe();
  expect(heard).toEqual([1, 2]);
  expect(warn.mock.calls).toEqual([
    [
      "A listener of x402-facilitator-kit:test-failing failed; payments are not affected by it. Please report it.",
      { code: observerFailed, detail: expect.stringMatching(/Cannot convert object(.|\n)*channels\.test/) },
    ],
  ]);
  warn.mockRestore();
});

test("a message that cannot be made ends no payment", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  const channel = defineChannel<{ n: number }>("test-unmade");
  const unsubscribe = channel.subscribe(() => {});
  channel.publish(() => {
    throw new Error("not made");
  });
  unsubscribe();
  expect(warn).toHaveBeenCalledOnce();
  warn.mockRestore();
});

test("channels carry the name of the project, for subscribers that import nothing of it", () => {
  expect(defineChannel("test-named").name).toBe("x402-facilitator-kit:test-named");
});
