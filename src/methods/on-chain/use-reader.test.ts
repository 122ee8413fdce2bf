import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { hashOf } from "../../../test/support/ledger/test-ledger.ts";
import { createChainReader } from "../../chain/chain-reader.ts";
import type { EndpointAnswer } from "../../chain/rpc/rpc.ts";
import { selector } from "../../chain/views.ts";
import { type Hex, uintWord as word } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { authorizationUse } from "../exact-eip3009/on-chain/eip3009-state.ts";
import { createIsUsed } from "./use-reader.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const address = `0x${"11".repeat(20)}` as const;
const asked = (name: string) => ({
  ...{ asset: address, id: hashOf(name) },
  ...{ payer: address, nonce: hashOf(name) },
});

/** How many authorizations a call asks about. */
function countViews(call: unknown): number {
  const asked = selector("authorizationState(address,bytes32)").slice(2);
  return JSON.stringify(call).split(asked).length - 1;
}

test("a node that is silent is asked for no more than it was, however many are refused meanwhile", async () => {
  const asks: { many: number; answer(): void }[] = [];
  const node = createChainReader(
    {
      ask(calls) {
        const { promise, resolve } = Promise.withResolvers<readonly EndpointAnswer[]>();
        // The number of the block, and of each view whether it was answered, its answer, and the hash of the code.
        const answerTo = (many: number): Hex =>
          `0x${word(1n)}${`${word(2n)}${word(1n)}${word(0n)}`.repeat(many)}`;
        const many = calls.reduce((sum, { params: [call] }) => sum + countViews(call), 0);
        asks.push({ many, answer: () => resolve([{ endpoint: "1", result: answerTo(many) }]) });
        return promise;
      },
    },
    "base",
  );
  const read = createIsUsed(authorizationUse);
  const isUsed = ({ id, ...payment }: ReturnType<typeof asked>) => read({ reader: node }, payment, id);
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
  // Time stands still: what is asked now is answered, however slow this machine is.
  for (let next = asks.shift(); next !== undefined; next = asks.shift()) {
    answered += next.many;
    next.answer();
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  }
  expect(answered).toBeLessThanOrEqual(1_024);
  const later = isUsed(asked("later"));
  while (asks.length === 0) await nextTurn();
  asks[0]?.answer();
  expect(await later).toBe(false);
});
