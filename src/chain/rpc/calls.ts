import { type Address, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { createLocalRpc, type LocalRpc, RpcRefusal } from "./local-rpc.ts";
import type { RpcAnswer, RpcCall } from "./rpc.ts";

/** The newest block. Its time is the chain's time. */
export type Head = {
  number: bigint;
  /** Unix seconds. */
  timestamp: bigint;
  /** Wei per gas. */
  baseFeePerGas: bigint;
};

/*
 * Each call is a single shared object, so that it is sent once in a request shared by several callers.
 */

export const headCall: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

export const chainIdCall: RpcCall = { method: "eth_chainId", params: [] };

export function nativeBalanceCall(account: Address): RpcCall {
  return { method: "eth_getBalance", params: [account, "latest"] };
}

/** Asks for the number of an account's transactions, by default the mined ones. */
export function transactionCountCall(account: Address, block: "latest" | "pending" = "latest"): RpcCall {
  return { method: "eth_getTransactionCount", params: [account, block] };
}

/** Parses a quantity as a safe integer; undefined if it is not one. */
export function readSafeInteger(result: unknown): number | undefined {
  const value = Number(readQuantity(result) ?? Number.NaN);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Parses a block; undefined if it is invalid. */
export function readHead(block: unknown): Head | undefined {
  const fields = membersOf(block);
  const number = readQuantity(fields.number);
  const timestamp = readQuantity(fields.timestamp);
  const baseFeePerGas = readQuantity(fields.baseFeePerGas);
  if (number === undefined || timestamp === undefined || baseFeePerGas === undefined) return undefined;
  return { number, timestamp, baseFeePerGas };
}

/**
 * Returns the time of a local node's newest block, in unix seconds.
 *
 * @param name the node's name in errors: `base`, or its URL
 * @throws {KitError} when the node does not answer, or has no block
 */
export async function readHeadTime(node: Pick<LocalRpc, "request">, name: string): Promise<bigint> {
  const block = await node.request("eth_getBlockByNumber", "latest", false);
  const timestamp = readQuantity(membersOf(block).timestamp);
  if (timestamp === undefined) throw new KitError(`The ${name} node has no newest block`);
  return timestamp;
}

/** Sends a single call to a node; an error of the node is an answer too. */
export type AskNode = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

export function askNode(rpcUrl: string): AskNode {
  const rpc = createLocalRpc(rpcUrl);
  return async (method, ...params) => {
    try {
      return { result: await rpc.request(method, ...params) };
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      return { error: { code: error.rpcCode, message: error.message, data: undefined } };
    }
  };
}
