import type { NetworkConfig } from "../config/network-config.ts";
import { readQuantity } from "../rpc/read-hex.ts";
import type { RpcAnswer, RpcCall } from "../rpc/rpc.ts";
import { boundTip } from "./signing/transaction.ts";

/** Asks for the tip, in wei per gas. One object, so that what is asked at the same time is asked once. */
export const tipCall: RpcCall = { method: "eth_maxPriorityFeePerGas", params: [] };

/** The node's word on the tip, within its bounds; without one, the usual. */
export function readTip(answer: RpcAnswer | undefined, network: NetworkConfig): bigint {
  return boundTip(readQuantity(answer?.result) ?? 0n, network);
}
