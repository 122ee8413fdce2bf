import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import { type Address, type Hex, isBytes, readQuantity } from "../../protocol/hex.ts";
import { foreign } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { createKeepAlivePost } from "../../util/http-client.ts";
import { isObject, membersOf } from "../../util/json.ts";
import { closeAtOnce, http, listenOnLoopback } from "../../util/node-http.ts";
import type { ForkFailures } from "../nodes/nodes.ts";
import { type AuthorizationSlots, createAuthorizationSlots } from "./authorization-slots.ts";
import type { ForkSource } from "./fork-options.ts";

export type ForkServerOptions = Pick<ForkSource, "network" | "kind" | "blockNumber"> & {
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
};

/** How many different failures are reported: a loop over accounts should not fill a log. */
const mostReports = 100;

/** Starts the server that a node forks from. What `answer` throws is a failure. */
export async function startForkServer(
  { network, kind, blockNumber, blankAccounts }: ForkServerOptions,
  answer: (call: RpcCall) => Promise<RpcAnswer>,
): Promise<ForkSource> {
  const answerBlank = createBlankAccounts(blankAccounts);
  const authorizations = new Map<string, AuthorizationSlots>();
  const reported = new Map<string, KitError>();
  let failures: ForkFailures = { count: 0, latest: undefined };
  const listeners: ((error: KitError) => void)[] = [];

  function report(call: RpcCall, error: unknown): void {
    if (!(error instanceof KitError)) return;
    failures = { count: failures.count + 1, latest: error };
    const key = callKey(call);
    if (reported.has(key) || reported.size >= mostReports) return;
    reported.set(key, error);
    for (const listener of listeners) listener(error);
  }

  async function respond(call: RpcCall): Promise<RpcAnswer> {
    // Only some nodes know it, and anvil asks in the usual ways too.
    if (call.method === "eth_getAccountInfo") return { error: unknownMethod };
    const blank = answerBlank(call);
    if (blank !== undefined) return blank;
    try {
      return await answer(call);
    } catch (error) {
      if (isUnusedAuthorization(call, authorizations)) return { result: `0x${"0".repeat(64)}` };
      report(call, error);
      throw error;
    }
  }

  const server = await startRpcServer(respond);
  return {
    network,
    kind,
    url: server.url,
    blockNumber,
    failures: () => failures,
    onFailure(listener) {
      for (const failure of reported.values()) listener(failure);
      listeners.push(listener);
    },
    expectAuthorizations(token, mappingSlot) {
      const slots = createAuthorizationSlots(mappingSlot);
      authorizations.set(token.toLowerCase(), slots);
      return slots;
    },
    keepRecording() {},
    explainStart: (error) => failures.latest ?? error,
    close: () => server.close(),
  };
}

const unknownMethod = { code: -32_601, message: "the method is not known", data: undefined };

function isUnusedAuthorization(
  { method, params: [token, slot] }: RpcCall,
  authorizations: ReadonlyMap<string, AuthorizationSlots>,
): boolean {
  if (method !== "eth_getStorageAt" || typeof token !== "string") return false;
  const key = readQuantity(slot);
  return key !== undefined && authorizations.get(token.toLowerCase())?.has(key) === true;
}

type Answer = (call: RpcCall) => Promise<RpcAnswer>;

/** Starts a JSON-RPC server on this machine: it answers every call, of a batch or alone, with what `answer` gives. */
function startRpcServer(answer: Answer) {
  return startLoopbackServer(async (body) => {
    const asked: unknown = JSON.parse(body);
    const reply = Array.isArray(asked)
      ? await Promise.all(asked.map((entry) => answerEntry(entry, answer)))
      : await answerEntry(asked, answer);
    return JSON.stringify(reply);
  });
}

async function answerEntry(entry: unknown, answer: Answer): Promise<Record<string, unknown>> {
  const { id = null, method, params = [] } = membersOf(entry);
  const failed = (code: number, message: string) => ({ jsonrpc: "2.0", id, error: { code, message } });
  if (typeof method !== "string" || !Array.isArray(params)) return failed(-32_600, "not a JSON-RPC call");
  try {
    const { result, error } = await answer({ method, params });
    return { jsonrpc: "2.0", id, ...(error === undefined ? { result } : { error }) };
  } catch (error) {
    return failed(-32_603, error instanceof Error ? error.message : String(error));
  }
}

/**
 * Where Prague keeps the hashes of earlier blocks (EIP-2935). Every block writes another slot of it: a fork would ask
 * for one with each block, and anvil 1.7 ends when there is no answer.
 */
const blockHashStore: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";

/**
 * Answers what a fork asks about accounts that the harness puts in place itself, as if they had never been used. So
 * what stands at those addresses on the real chain, such as the code that published keys are delegated to, is not on
 * the fork: no code, no storage, no txNonce, no balance.
 *
 * @returns undefined for a call about anything else
 */
export function createBlankAccounts(addresses: readonly Address[]): (call: RpcCall) => RpcAnswer | undefined {
  const blank = new Set(addresses.map((address) => address.toLowerCase()));
  return ({ method, params: [subject] }) => {
    if (typeof subject !== "string") return undefined;
    const address = subject.toLowerCase();
    if (method === "eth_getStorageAt" && (address === blockHashStore || blank.has(address))) {
      return { result: `0x${"0".repeat(64)}` };
    }
    if (!blank.has(address)) return undefined;
    switch (method) {
      case "eth_getCode":
        return { result: "0x" };
      case "eth_getBalance":
      case "eth_getTransactionCount":
        return { result: "0x0" };
      default:
        return undefined;
    }
  };
}

/** The same text for calls that ask the same: nodes and clients spell addresses and numbers in either case. */
export function callKey({ method, params }: RpcCall): string {
  return `${method} ${JSON.stringify(params).replace(/"0x[0-9a-fA-F]*"/g, (hex) => hex.toLowerCase())}`;
}

/**
 * Starts a server on this machine alone, at any free port, for JSON that is posted to it: gives the body of each answer. What throws breaks the connection. Web
 * pages get 403: its callers are the programs of this machine.
 */
export async function startLoopbackServer(answer: (body: string) => Promise<string>) {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { origin } = request.headers;
    if (origin !== undefined || foreign(request.headers, { host: "127.0.0.1" }) !== undefined) {
      response.writeHead(403).end();
      return;
    }
    try {
      const body = await answer(await text(request));
      response.writeHead(200, { "content-type": "application/json" }).end(body);
    } catch {
      response.destroy();
    }
  };
  const server = http.createServer(respond);
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    close: () => closeAtOnce(server),
  };
}

/** Longer than a node takes for anything. */
const timeoutMs = 300_000;

/** Stands in front of a node, and shows the calldata of everything that comes through before the node sees it. */
export async function startCalldataGate(nodeUrl: string, note: (calldata: Hex) => void) {
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

/** The calldata of a call: in the fields of a transaction, of any method that takes one, or in raw bytes. */
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
