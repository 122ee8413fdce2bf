import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import { type Answer, type Call, type Hit, type Message, readAnswers } from "./connection-faults.ts";

/**
 * Has the calls of a request answered by the node, with what the hits of single calls make of them. The first fault
 * that hits a call decides about it. `forward` sends a body to the node and gives the body of its answer.
 */
export async function answerCalls(
  { calls, isBatch }: Message,
  hits: readonly Hit[],
  node: LocalRpc,
  forward: (body: string) => Promise<string>,
): Promise<string> {
  const write = (entries: readonly object[]) => JSON.stringify(isBatch ? entries : entries[0]);
  const interceptions = await Promise.all(calls.map((call, index) => intercept(call, index, hits, node)));
  const sent = interceptions.flatMap(({ call }) => call ?? []);
  const given = sent.length === 0 ? [] : readAnswers(await forward(write(sent)), sent);
  const left = [...given];
  const answers: Answer[] = [];
  for (const { call, answer } of interceptions) {
    const own = call === undefined ? {} : left.shift();
    // What the node has left unanswered stays so.
    if (own !== undefined) answers.push(answer(own));
  }
  return write(answers);
}

async function intercept(
  call: Call,
  index: number,
  hits: readonly Hit[],
  node: LocalRpc,
): Promise<Interception> {
  for (const { fault, calls } of hits) {
    if (!calls.has(index)) continue;
    const { spec } = fault;
    switch (spec.kind) {
      case "error":
        return answerWith(call, { error: { code: spec.code, message: spec.message } });
      case "stale-head": {
        const head = readQuantity(await node.request("eth_blockNumber")) ?? 0n;
        const seen = head - BigInt(spec.blocks);
        return asSeenAt(seen > 0n ? seen : 0n, call);
      }
      case "receipt-of-another":
        // Only a question for a receipt can be answered with one.
        if (call.method !== "eth_getTransactionReceipt") break;
        return receiptOfAnother(node, call, spec.disguised ?? false);
    }
  }
  return { call, answer: (given) => given };
}

/** What a fault makes of one call. */
export type Interception = {
  /** The call as the node is to get it; nothing where it is answered without the node. */
  call?: Call;
  /** Makes the answer out of the node's. */
  answer(given: Answer): Answer;
};

/** Answers a call without asking the node. */
export function answerWith({ id }: Call, answer: { result: unknown } | { error: unknown }): Interception {
  return { answer: () => ({ jsonrpc: "2.0", id, ...answer }) };
}

/** Lets a call through, and changes its result. */
export function alterResult(call: Call, alter: (result: unknown) => unknown): Interception {
  return {
    call,
    answer: (given) => ("result" in given ? { ...given, result: alter(given.result) } : given),
  };
}

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
