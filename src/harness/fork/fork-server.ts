import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import {
  type AuthorizationSlots,
  createAuthorizationSlots,
} from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import { type Address, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { ForkFailures } from "../nodes/nodes.ts";
import { createBlankAccounts } from "./blank-accounts.ts";
import { callKey } from "./call-key.ts";
import type { ForkSource } from "./fork-source.ts";
import { type LoopbackServer, startLoopbackServer } from "./loopback-server.ts";

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
function startRpcServer(answer: Answer): Promise<LoopbackServer> {
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
