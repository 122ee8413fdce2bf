import { type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { type Address, type Hex, quantity, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { initialBaseFee } from "../nodes/launch-anvil.ts";
import type { LocalNode } from "../nodes/nodes.ts";

export type StartingPoint = ChainMark & {
  readonly mined: MinedCounts;
  /** The block number of the latest snapshot or restore. */
  newestMark(): number;
  /** Takes another snapshot of the chain. */
  mark(): Promise<ChainMark>;
};

/** A snapshot of a chain. */
export type ChainMark = {
  /** Restores the chain, any number of times. Nothing may be sent to it meanwhile. Later snapshots are lost. */
  restore(): Promise<MinedCounts>;
};

/** The number of mined transactions of each of the service's accounts. */
export type MinedCounts = ReadonlyMap<Address, number>;

/** State that a snapshot of the node does not include. */
type Beside = {
  /** The base fee of the next block, in wei per gas. */
  baseFee: bigint;
  /** How many seconds the chain's time is ahead of this machine's clock. */
  ahead: number;
};

/**
 * Starts automatic mining and takes a snapshot of the chain.
 *
 * Anvil's snapshots hold blocks and accounts. Everything else is restored separately: the pool, the mining mode, the clock,
 * the next block's fee, and the account that fees are paid to. Reverting uses up a snapshot and all later ones, so a new one
 * is taken each time.
 *
 * The base fee is one wei higher each time, so that the block mined then, and all after it, have new hashes. Anvil keeps the
 * states of the newest blocks by hash. If the same block were mined after each revert, its state would be dropped together
 * with the oldest one of the same hash, and after a few resets no reorganization could go back to it. With a seed, the hashes
 * must be the same.
 *
 * All of this is one request. The node executes the calls of a batch in order. If one has to wait for a call of another
 * client, the others queue for the same lock behind it.
 *
 * @param impersonated the account whose unsigned transactions the node accepts
 * @param ownClock true if the chain has its own clock instead of this machine's
 * @param ahead how many seconds the chain's time is to be ahead of this machine's clock
 */
export async function takeStartingPoint(
  node: LocalNode,
  { impersonated, ownClock, ahead = 0 }: { impersonated: Address; ownClock: boolean; ahead?: number },
): Promise<StartingPoint> {
  const start: Beside = { baseFee: BigInt(initialBaseFee), ahead };
  let beginnings = 0n;
  const [first, startBlock, ...begun] = await node.batch(begin(start));
  /** Without its own clock, the chain mines a block at each start. It counts as part of the snapshot, since it is empty. */
  const minedAtBeginning = ownClock ? 0 : 1;
  let newestMark = Number(startBlock) + minedAtBeginning;

  /** The first call returns the id of a new snapshot, the second its block number. */
  function begin({ baseFee, ahead }: Beside): LocalCall[] {
    const differentFee = ownClock ? baseFee : baseFee + beginnings++;
    const timing: LocalCall[] = ownClock
      ? [["anvil_setBlockTimestampInterval", 1]]
      : // After a revert, the head is as old as the snapshot.
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
            // Disables every kind of automatic mining, so that nothing is mined between the steps.
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

/** The sending accounts of the service, which must know their next transaction nonces when it starts. */
const senders = [harnessAccounts.operator.address, harnessAccounts.recoverer.address];

/** Reads the transaction counts from the last answers of the batch. */
function readCounts(answers: readonly unknown[]): MinedCounts {
  const counts = answers.slice(-senders.length);
  return new Map(senders.map((account, index) => [account, Number(counts[index])]));
}

/** This machine's time, in unix seconds. */
export const clock = () => Math.floor(Date.now() / 1_000);

const zeroAddress: Hex = `0x${"00".repeat(20)}`;
