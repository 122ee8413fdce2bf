import { expect, test } from "vitest";
import { withEitherSignal } from "./either-signal.ts";

const untilAborted = (signal: AbortSignal) =>
  new Promise<string>((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"));
  });

test.each(["own", "shared"] as const)("the %s signal ends the work", async (which) => {
  const signals = { own: new AbortController(), shared: new AbortController() };
  const work = withEitherSignal(signals.shared.signal)(signals.own.signal, untilAborted);
  signals[which].abort();
  expect(await work).toBe("aborted");
});

test.each(["own", "shared"] as const)("the %s signal ends work that begins after it", async (which) => {
  const signals = { own: new AbortController(), shared: new AbortController() };
  signals[which].abort();
  expect(await withEitherSignal(signals.shared.signal)(signals.own.signal, untilAborted)).toBe("aborted");
});

test("one's own signal ends no other work, and none that has ended", async () => {
  const one = new AbortController();
  const together = withEitherSignal(new AbortController().signal);
  let ended: AbortSignal | undefined;
  await together(one.signal, async (signal) => {
    ended = signal;
  });
  const other = together(new AbortController().signal, async (signal) => {
    one.abort();
    return signal.aborted;
  });
  expect(await other).toBe(false);
  expect(ended?.aborted).toBe(false);
});
