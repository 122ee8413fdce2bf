import type { LocalNode } from "../../src/harness/nodes/nodes.ts";

/** The transactions in the newest blocks, which a reorganization of that depth removes. */
export async function transactionsOfNewest(node: LocalNode, blocks: number): Promise<string[]> {
  const head = Number(await node.request("eth_blockNumber"));
  const hashes: string[] = [];
  for (let number = head; number > head - blocks; number--) {
    const block = await node.request("eth_getBlockByNumber", `0x${number.toString(16)}`, false);
    hashes.push(...Object(block).transactions);
  }
  return hashes;
}
