import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import { transferTopic } from "../../src/methods/on-chain/events.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";

/** A `Transfer` of the token on the current chain. */
export type Transfer = { transaction: Hex; from: Address; to: Address; value: bigint };

/** All transfers of a chain's token since a block, in order. */
export async function transfersSince({ node, asset }: HarnessChain, block: number): Promise<Transfer[]> {
  // A payment that takes nothing adds no block, and anvil rejects a range after the newest block.
  if (Number(await node.request("eth_blockNumber")) < block) return [];
  const logs = await node.request("eth_getLogs", {
    ...{ fromBlock: `0x${block.toString(16)}`, toBlock: "latest" },
    ...{ address: asset.address, topics: [transferTopic] },
  });
  return (logs as { transactionHash: Hex; topics: readonly Hex[]; data: Hex }[]).map(
    ({ transactionHash, topics, data }) => ({
      transaction: transactionHash,
      from: addressIn(topics[1]),
      to: addressIn(topics[2]),
      value: BigInt(data),
    }),
  );
}

function addressIn(topic: Hex = "0x"): Address {
  return `0x${topic.slice(-40)}`;
}
