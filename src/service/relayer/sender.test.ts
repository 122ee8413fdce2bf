import { serializeTransaction } from "viem/utils";
import { expect, test } from "vitest";
import { chainId, hashOf, operator } from "../../../test/support/ledger/test-ledger.ts";
import { createFlight } from "./sender.ts";

function attemptOf(txNonce: number, maxFeePerGas: bigint) {
  return {
    ...{ chainId, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas: 1n, createdAt: 0 },
    kind: "settle" as const,
    hash: hashOf(`transaction ${txNonce} ${maxFeePerGas}`),
    raw: serializeTransaction({ chainId, nonce: txNonce, gas: 1_000n, maxFeePerGas }),
  };
}

test("what is sent, sent again or replaced counts as spent once, by its dearest attempt, also once it is mined", () => {
  const flight = createFlight(Date.now);
  flight.track({ attempt: attemptOf(0, 3n), settlements: [] });
  flight.track({ attempt: attemptOf(0, 3n), settlements: [] });
  expect(flight.spent()).toBe(3_000n);
  const moved = flight.track({ attempt: attemptOf(1, 2n), settlements: [] });
  flight.addAttempt(moved, attemptOf(1, 5n));
  flight.addAttempt(moved, attemptOf(1, 1n));
  expect([flight.spent(), flight.cost()]).toEqual([8_000n, 8_000n]);
  flight.slots.delete(0);
  expect([flight.spent(), flight.cost()]).toEqual([8_000n, 5_000n]);
});
