import type { RpcAnswer, RpcCall } from "../../rpc/rpc.ts";
import { membersOf } from "../../util/json.ts";
import { type LoopbackServer, startLoopbackServer } from "./loopback-server.ts";

type Answer = (call: RpcCall) => Promise<RpcAnswer>;

/** Starts a JSON-RPC server on this machine: it answers every call, of a batch or alone, with what `answer` gives. */
export function startRpcServer(answer: Answer): Promise<LoopbackServer> {
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
