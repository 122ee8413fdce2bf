import { type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { type Address, type Hex, quantity, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { initialBaseFee } from "../nodes/launch-anvil.ts";
import type { LocalNode } from "../nodes/nodes.ts";

export type StartingPoint = ChainMark & {
  readonly mined: MinedCounts;
  /** The number of the block at which the chain was remembered, or put back, at last. */
  newestMark(): number;
  /** Remembers the chain as it is now, besides. */
  mark(): Promise<ChainMark>;
};

/** A moment of a chain. */
export type ChainMark = {
  /**
   * Puts the chain back, any number of times; nothing may be sent to it meanwhile. Moments that were remembered later
   * are lost then.
   */
  restore(): Promise<MinedCounts>;
};

/** How many transactions of the accounts of the service the chain has mined. */
export type MinedCounts = ReadonlyMap<Address, number>;

/** The state that a snapshot of the node leaves out. */
type Beside = {
  /** Wei per gas of the next block. */
  baseFee: bigint;
  /** How many seconds the chain's time is ahead of this machine's. */
  ahead: number;
};

/**
 * Begins to mine transactions as they come, and remembers the chain as it is now.
 *
 * A snapshot of anvil holds blocks and accounts. What it leaves out is put back one by one: the pool, the mode of
 * mining, the clock, the fee of the next block, the account that fees are paid to. A snapshot is used up by reverting
 * to it, together with those taken after it, and is taken anew then.
 *
 * Each time the base fee is a wei higher, so that the block that is mined then has a hash of its own, and all after it. Anvil
 * keeps the states of the newest blocks by their hashes: where a block is mined again after each revert, the newest state is
 * forgotten with the oldest one of the same hash, and after some resets no reorganization could go back to it. With a seed,
 * hashes are to be the same.
 *
 * All of it is one request. The node carries out the calls of a batch in their order, and where one has to wait, for a
 * call of another client, the others queue for the same lock behind it.
 *
 * @param impersonated whom the node sends unsigned transactions for
 * @param ownClock whether the chain's time is its own, and not this machine's
 * @param ahead how many seconds it is to be ahead of this machine's
 */
export async function takeStartingPoint(
  node: LocalNode,
  { impersonated, ownClock, ahead = 0 }: { impersonated: Address; ownClock: boolean; ahead?: number },
): Promise<StartingPoint> {
  const start: Beside = { baseFee: BigInt(initialBaseFee), ahead };
  let beginnings = 0n;
  const [first, startBlock, ...begun] = await node.batch(begin(start));
  /** The block that a beginning mines is as good as the one before: nothing is in it. */
  const minedAtBeginning = ownClock ? 0 : 1;
  let newestMark = Number(startBlock) + minedAtBeginning;

  /** The first call gives the id of a new snapshot, the second the block that it is of. */
  function begin({ baseFee, ahead }: Beside): LocalCall[] {
    const differentFee = ownClock ? baseFee : baseFee + beginnings++;
    const timing: LocalCall[] = ownClock
      ? [["anvil_setBlockTimestampInterval", 1]]
      : // After a revert the head is as old as the snapshot.
        [["anvil_removeBlockTimestampInterval"], ["evm_setTime", clock() + ahead], ["evm_mine"]];
    return [
      ["evm_snapshot"],
      ["eth_blockNumber"],
      ["anvil_autoImpersonateAccount", false],
      ["anvil_impersonateAccount", impersonated],
      ["anvil_setCoinbase", zeroAddress],
      ["anvil_setNextBlockBaseFeePerGas", quantity(differentFee)],
      ...timing,
      ["evm_setAutomine", true],
      ...senders.map((account): LocalCall => ["eth_getTransactionCount", account, "latest"]),
    ];
  }

  function markAt(taken: unknown, block: number, beside: Beside, name: string): ChainMark {
    let snapshot = taken;
    const gone = (cause?: unknown) =>
      new KitError(`The ${node.name} chain cannot be put back: ${name} is gone`, {
        cause,
        hints: ["Something has reset the node, or reverted it to an older snapshot. Start a new harness."],
      });
    return {
      async restore() {
        const [, , reverted, next, ...answers] = await node
          .batch([
            // No automatic mining in any mode, so that nothing is mined between the steps.
            ["evm_setIntervalMining", 0],
            ["anvil_dropAllTransactions"],
            ["evm_revert", snapshot],
            ...begin(beside),
          ])
          .catch((error: unknown) => {
            throw error instanceof RpcRefusal ? gone(error) : error;
          });
        if (reverted !== true) throw gone();
        snapshot = next;
        newestMark = block + minedAtBeginning;
        return readCounts(answers);
      },
    };
  }

  return {
    ...markAt(first, Number(startBlock), start, "its first snapshot"),
    mined: readCounts(begun),
    newestMark: () => newestMark,
    async mark() {
      const [snapshot, latest, pending] = await node.batch([
        ["evm_snapshot"],
        ["eth_getBlockByNumber", "latest", false],
        ["eth_getBlockByNumber", "pending", false],
      ]);
      const baseFee = readQuantity(membersOf(pending).baseFeePerGas) ?? start.baseFee;
      const { timestamp, number } = membersOf(latest);
      const ahead = Math.max(0, Number(readQuantity(timestamp) ?? 0n) - clock());
      newestMark = Number(number);
      return markAt(snapshot, newestMark, { baseFee, ahead }, "the snapshot");
    },
  };
}

/** The accounts of the service, which has to know their next txNonce when it starts. */
const senders = [harnessAccounts.operator.address, harnessAccounts.recoverer.address];

/** Reads the counts from the last answers of the setup. */
function readCounts(answers: readonly unknown[]): MinedCounts {
  const counts = answers.slice(-senders.length);
  return new Map(senders.map((account, index) => [account, Number(counts[index])]));
}

/** This machine's time, in unix seconds. */
export const clock = () => Math.floor(Date.now() / 1_000);

const zeroAddress: Hex = `0x${"00".repeat(20)}`;
