import { readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { alterResult, answerWith, type Interception } from "./interception.ts";
import type { Call } from "./json-rpc-message.ts";

/** What stands for a block that is near the newest one. */
const tags: ReadonlySet<unknown> = new Set(["latest", "pending", "safe", "finalized"]);

/** Answers of these say in which block something is. */
const inBlocks: ReadonlySet<string> = new Set(["eth_getTransactionReceipt", "eth_getTransactionByHash"]);

/**
 * Has a node answer as if it had seen no block after `head`: what is asked about the newest block is asked about
 * that one, and what is in later blocks is not there yet. What is sent to it goes through.
 */
export function asSeenAt(head: bigint, call: Call): Interception {
  const { method, params } = call;
  const hex = `0x${head.toString(16)}`;
  if (method === "eth_blockNumber") return answerWith(call, { result: hex });
  const [first] = params;
  if (method === "eth_getBlockByNumber" && isLater(first, head)) return answerWith(call, { result: null });
  if (inBlocks.has(method)) {
    return alterResult(call, (result) => (isLater(membersOf(result).blockNumber, head) ? null : result));
  }
  if (method === "eth_getLogs") {
    return alterResult(call, (logs) =>
      Array.isArray(logs) ? logs.filter((log) => !isLater(membersOf(log).blockNumber, head)) : logs,
    );
  }
  return {
    call: { ...call, params: params.map((param) => (tags.has(param) ? hex : param)) },
    answer: (given) => given,
  };
}

function isLater(number: unknown, head: bigint): boolean {
  const value = readQuantity(number);
  return value !== undefined && value > head;
}
