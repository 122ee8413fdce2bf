import { KitError } from "../../errors.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { type LocalCall, RpcRefusal } from "../../rpc/local-rpc.ts";
import { initialBaseFee } from "../nodes/launch-anvil.ts";
import type { LocalNode } from "../nodes/nodes.ts";

export type StartingPoint = {
  /** Puts the chain back. Nothing may be sent to it meanwhile. */
  restore(): Promise<void>;
};

/**
 * Begins to mine transactions as they come, and remembers the chain as it is now.
 *
 * A snapshot of anvil holds blocks and accounts. What it leaves out is put back one by one: the pool, the mode of
 * mining, the clock, the fee of the next block, the account that fees are paid to. A snapshot is used up by reverting
 * to it, and those taken after it break the chain's head: there is only ever this one.
 *
 * All of it is one request. The node carries out the calls of a batch in their order, and where one has to wait, for a
 * call of another client, the others queue for the same lock behind it.
 *
 * @param impersonated whom the node sends unsigned transactions for
 * @param ownClock whether the chain's time is its own, and not this machine's
 */
export async function takeStartingPoint(
  node: LocalNode,
  { impersonated, ownClock }: { impersonated: Address; ownClock: boolean },
): Promise<StartingPoint> {
  const [first] = await node.batch(begin());
  let snapshot = first;

  function begin(): LocalCall[] {
    const clock: LocalCall[] = ownClock
      ? [["anvil_setBlockTimestampInterval", 1]]
      : // After a revert the head is as old as the snapshot.
        [
          ["anvil_removeBlockTimestampInterval"],
          ["evm_setTime", Math.floor(Date.now() / 1_000)],
          ["evm_mine"],
        ];
    return [
      ["evm_snapshot"],
      ["anvil_autoImpersonateAccount", false],
      ["anvil_impersonateAccount", impersonated],
      ["anvil_setCoinbase", zeroAddress],
      ["anvil_setNextBlockBaseFeePerGas", `0x${initialBaseFee.toString(16)}`],
      ...clock,
      ["evm_setAutomine", true],
    ];
  }

  function snapshotGone(cause?: unknown): KitError {
    return new KitError(`The ${node.name} chain cannot be put back: its first snapshot is gone`, {
      cause,
      hints: ["Something has reset the node, or reverted it to an older snapshot. Start a new harness."],
    });
  }

  return {
    async restore() {
      const [, , reverted, next] = await node
        .batch([
          // No automatic mining in any mode, so that nothing is mined between the steps.
          ["evm_setIntervalMining", 0],
          ["anvil_dropAllTransactions"],
          ["evm_revert", snapshot],
          ...begin(),
        ])
        .catch((error: unknown) => {
          throw error instanceof RpcRefusal ? snapshotGone(error) : error;
        });
      if (reverted !== true) throw snapshotGone();
      snapshot = next;
    },
  };
}

const zeroAddress: Hex = `0x${"00".repeat(20)}`;
