import { type Hex, isBytes } from "../../protocol/hex.ts";
import { createKeepAlivePost } from "../../util/http-client.ts";
import { isObject, membersOf } from "../../util/json.ts";
import { type LoopbackServer, startLoopbackServer } from "./fork-server.ts";

/** Longer than a node takes for anything. */
const timeoutMs = 300_000;

/** Stands in front of a node, and shows the calldata of everything that comes through before the node sees it. */
export async function startCalldataGate(
  nodeUrl: string,
  note: (calldata: Hex) => void,
): Promise<LoopbackServer> {
  const post = createKeepAlivePost(new URL(nodeUrl), { timeoutMs, maxResponseBytes: 256 * 1024 * 1024 });
  const server = await startLoopbackServer(async (body) => {
    for (const calldata of await calldataIn(body)) note(calldata);
    return post(body);
  });
  return {
    url: server.url,
    async close() {
      post.close();
      await server.close();
    },
  };
}

async function calldataIn(body: string): Promise<readonly Hex[]> {
  const calls: unknown[] = [JSON.parse(body)].flat();
  return (await Promise.all(calls.map(calldataOf))).flat();
}

/** What a call gives to contracts: in the fields of a transaction, of any method that takes one, or in raw bytes. */
async function calldataOf(call: unknown): Promise<readonly Hex[]> {
  const { method, params } = membersOf(call);
  if (!Array.isArray(params)) return [];
  const [first]: unknown[] = params;
  if (typeof method === "string" && method.startsWith("eth_sendRawTransaction")) {
    return isBytes(first) ? readRawTransaction(first) : [];
  }
  const found: Hex[] = [];
  collect(first, found, 0);
  return found;
}

/** `eth_simulateV1` nests its calls: in an array, in an object, in an array, in the parameter. */
const deepest = 6;

function collect(value: unknown, found: Hex[], depth: number): void {
  if (!isObject(value) || depth > deepest) return;
  for (const [key, inner] of Object.entries(value)) {
    if ((key === "data" || key === "input") && isBytes(inner)) found.push(inner);
    else collect(inner, found, depth + 1);
  }
}

async function readRawTransaction(bytes: Hex): Promise<readonly Hex[]> {
  const { parseTransaction } = await import("viem");
  try {
    const { data } = parseTransaction(bytes);
    return data === undefined ? [] : [data];
  } catch {
    // The node says what is wrong with it.
    return [];
  }
}
