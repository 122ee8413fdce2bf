import { readQuantity } from "./read-hex.ts";
import type { RpcCall } from "./rpc.ts";

/** The newest block, whose time is the chain's time. */
export type Head = {
  number: bigint;
  /** Unix seconds. */
  timestamp: bigint;
  /** Wei per gas. */
  baseFeePerGas: bigint;
};

/** Asks for the newest block. One object, so that simulations that share a request ask for it once. */
export const headCall: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

/** Reads a block as a head; undefined when it is none. */
export function readHead(block: unknown): Head | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const fields: { number?: unknown; timestamp?: unknown; baseFeePerGas?: unknown } = block;
  const number = readQuantity(fields.number);
  const timestamp = readQuantity(fields.timestamp);
  const baseFeePerGas = readQuantity(fields.baseFeePerGas);
  if (number === undefined || timestamp === undefined || baseFeePerGas === undefined) return undefined;
  return { number, timestamp, baseFeePerGas };
}
