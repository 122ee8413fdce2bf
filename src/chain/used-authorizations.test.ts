import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { hashOf } from "../../test/support/ledger/test-ledger.ts";
import { UndeterminedError } from "../util/errors.ts";
import { createUseReader } from "./used-authorizations.ts";
import type { ViewResult } from "./view-calls.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const address = `0x${"11".repeat(20)}` as const;
const asked = (name: string) => ({
  ...{ asset: address, id: hashOf(name) },
  authorization: { from: address, nonce: hashOf(name) },
});

test("a node that is silent is asked for no more than it was, however many are refused meanwhile", async () => {
  const asks: { many: number; answer(): void }[] = [];
  const isUsed = createUseReader((views) => {
    const { promise, resolve } = Promise.withResolvers<readonly ViewResult[]>();
    asks.push({
      many: views.length,
      answer: () => resolve(views.map(() => ({ codeHash: hashOf("code"), word: `0x${"0".repeat(64)}` }))),
    });
    return promise;
  });
  let refused = 0;
  for (let round = 0; round < 5; round++) {
    const many = Array.from({ length: 1_000 }, (_, index) => isUsed(asked(`${round} ${index}`)));
    const ended = Promise.allSettled(many);
    await vi.advanceTimersByTimeAsync(3_000);
    for (const end of await ended) {
      expect(end).toMatchObject({ status: "rejected", reason: expect.any(UndeterminedError) });
      refused++;
    }
  }
  expect(refused).toBe(5_000);
  let answered = 0;
  vi.useRealTimers();
  for (let next = asks.shift(); next !== undefined; next = asks.shift()) {
    answered += next.many;
    next.answer();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(answered).toBeLessThanOrEqual(1_024);
  const later = isUsed(asked("later"));
  await vi.waitFor(() => expect(asks).toHaveLength(1));
  asks[0]?.answer();
  expect(await later).toBe(false);
});
