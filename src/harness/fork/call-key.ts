import type { RpcCall } from "../../chain/rpc/rpc.ts";

/** The same text for calls that ask the same: nodes and clients spell addresses and numbers in either case. */
export function callKey({ method, params }: RpcCall): string {
  return `${method} ${JSON.stringify(params).replace(/"0x[0-9a-fA-F]*"/g, (hex) => hex.toLowerCase())}`;
}
