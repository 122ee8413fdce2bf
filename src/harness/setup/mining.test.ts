import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { quantity } from "../../protocol/hex.ts";
import type { LocalNode } from "../nodes/nodes.ts";
import { createMining, startHeartbeat } from "./mining.ts";

/** A node like anvil, whose blocks are only their fees, and which is making a block when it is asked for the first one. */
function startedNode() {
  const fees: bigint[] = [];
  let [nextFee, isMakingOne] = [7n, true];
  const answer = ([method, parameter]: readonly unknown[]) => {
    if (method === "anvil_setNextBlockBaseFeePerGas") nextFee = BigInt(String(parameter));
    if (!String(method).startsWith("evm_mine")) return true;
    if (isMakingOne) nextFee = 7n;
    isMakingOne = false;
    fees.push(nextFee);
    nextFee = 7n;
    return [{ baseFeePerGas: quantity(fees.at(-1) ?? 0n) }];
  };
  const node = {
    request: async (...call: readonly unknown[]) => answer(call),
    batch: async (calls: readonly (readonly unknown[])[]) => calls.map(answer),
  };
  return { fees, node: node as unknown as LocalNode };
}

test("a fee is that of the newest block although the node ended a block meanwhile, and forgot it", async () => {
  const { fees, node } = startedNode();
  const { control } = createMining(node, { ownClock: true });
  await control.fixBaseFee(100n);
  expect(fees.at(-1)).toBe(100n);
  await control.mine(2);
  expect(fees.slice(-3)).toEqual([100n, 100n, 100n]);
  await control.freeBaseFee(9n);
  expect(fees.at(-1)).toBe(9n);
});

test("the heartbeat of a node that has exited does not start again", async () => {
  const mine = vi.fn(async () => {});
  const exited = Promise.resolve();
  const heartbeat = startHeartbeat({ exited } as LocalNode, mine);
  await exited;
  heartbeat.resume();
  // It beats once a second.
  await sleep(1_200);
  expect(mine).not.toHaveBeenCalled();
});
