import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { alterResult, type Interception } from "./interception.ts";
import type { Call } from "./json-rpc-message.ts";

/** How many of the first and of the newest blocks are searched for another transaction. */
const searched = 24n;

/**
 * Answers with the receipt of another transaction of the chain; `disguised`, under the hash that was asked for. Where
 * the chain holds no other, there is no receipt.
 */
export async function receiptOfAnother(
  node: LocalRpc,
  call: Call,
  disguised: boolean,
): Promise<Interception> {
  const [asked] = call.params;
  const other = await findOther(node, asked);
  const receipt = other === undefined ? null : await node.request("eth_getTransactionReceipt", other);
  const answered = disguised && receipt !== null ? { ...Object(receipt), transactionHash: asked } : receipt;
  return alterResult(call, () => answered);
}

/** The hash of the newest other transaction among the blocks that are searched. */
async function findOther(node: LocalRpc, hash: unknown): Promise<unknown> {
  const head = readQuantity(await node.request("eth_blockNumber")) ?? 0n;
  const numbers = new Set<bigint>();
  for (let back = 0n; back < searched && back <= head; back++) numbers.add(head - back);
  for (let number = 1n; number <= searched && number <= head; number++) numbers.add(number);
  const blocks = await node.batch(
    [...numbers].map((number): LocalCall => ["eth_getBlockByNumber", `0x${number.toString(16)}`, false]),
  );
  return blocks.flatMap(transactionsOf).find((other) => other !== hash);
}

function transactionsOf(block: unknown): readonly unknown[] {
  const { transactions } = membersOf(block);
  return Array.isArray(transactions) ? transactions : [];
}
