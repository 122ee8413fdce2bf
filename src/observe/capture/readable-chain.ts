import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";

/** A chain that a capture reads. No transactions are sent. */
export type ReadableChain = {
  network: Pick<Network, "name" | "chainId">;
  facilitatorContract: Address;
  asset: Asset;
  /** The usual time between its blocks, in milliseconds. */
  blockTimeMs: number;
  /** Of so many of its newest blocks a local node keeps the state, and of all blocks the logs. */
  statesKept?: number;
  /** A node's result of, or error for, one call; throws if the node does not answer. */
  ask(method: string, ...params: readonly unknown[]): Promise<RpcAnswer>;
};
