import type { LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../protocol/hex.ts";
import type { Hit } from "./connection-faults.ts";
import { answerWith, type Interception } from "./interception.ts";
import { type Answer, type Call, type Message, readAnswers } from "./json-rpc-message.ts";
import { receiptOfAnother } from "./receipt-of-another.ts";
import { asSeenAt } from "./stale-head.ts";

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
