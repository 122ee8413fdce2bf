import { readQuantity } from "./read-hex.ts";
import type { RpcCall } from "./rpc.ts";

/** Asks which chain a node serves. One object, so that questions that share a request ask it once. */
export const chainIdCall: RpcCall = { method: "eth_chainId", params: [] };

/** Reads a chain id; undefined when it is none. */
export function readChainId(result: unknown): number | undefined {
  const chainId = Number(readQuantity(result) ?? Number.NaN);
  return Number.isSafeInteger(chainId) ? chainId : undefined;
}
