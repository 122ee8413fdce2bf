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
  /** Accounts that the harness sets up itself. The fork sees them as never used. */
  blankAccounts: readonly Address[];
};

/** How many distinct failures are reported, so that a loop over accounts does not flood the log. */
const mostReports = 100;

/** Starts the server that a node forks from. If `answer` throws, the call fails; a KitError is also reported. */
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
    // Only some nodes support it, and anvil falls back to the standard methods.
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

/** Starts a local JSON-RPC server that answers every call, single or in a batch, with `answer`. */
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
 * The contract in which Prague keeps the hashes of earlier blocks (EIP-2935). Every block writes another of its slots, so a
 * fork would request one with each block, and anvil 1.7 exits if there is no answer.
 */
const blockHashStore: Address = "0x0000f90827f1c53a10cb7a02335b175320002935";

/**
 * Answers a fork's calls about accounts that the harness sets up itself as if they had never been used. So what the real
 * chain has at those addresses, such as the code that published keys are delegated to, is not on the fork: no code, no
 * storage, no nonce, no balance.
 *
 * @returns undefined for any other call
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

/** A key that is equal for equal calls: nodes and clients write hex in either case. */
export function callKey({ method, params }: RpcCall): string {
  return `${method} ${JSON.stringify(params).replace(/"0x[0-9a-fA-F]*"/g, (hex) => hex.toLowerCase())}`;
}

/**
 * Starts a server on a free loopback port that answers posted JSON with the result of `answer`. If `answer` throws, the
 * connection is dropped. Web pages get 403: only programs on this machine may call.
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

/** Longer than any call to a node takes. */
const timeoutMs = 300_000;

/** Starts a proxy in front of a node that passes the calldata of every request to `note` before the node sees it. */
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

/** The calldata in a call: from the fields of a transaction, for any method that takes one, or from raw bytes. */
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

/** `eth_simulateV1` nests its calls deepest: an array in an object in an array in the parameter. */
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
    // The node will report what is wrong with it.
    return [];
  }
}
