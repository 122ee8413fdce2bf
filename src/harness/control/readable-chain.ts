import { createLocalRpc, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { ReadableChain } from "../../observe/capture/chain-questions.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { statesKept } from "../nodes/launch-anvil.ts";
import type { ControlledHarness } from "./controlled-harness.ts";

/** A local chain as people's questions about a payment are asked of it; undefined where it does not run here. */
export function readableChainOf(
  chains: ControlledHarness["chains"],
  network: NetworkName | null,
): ReadableChain | undefined {
  const chain = network === null ? undefined : chains[network];
  if (chain === undefined) return undefined;
  return { ...chain, statesKept, ask: askNode(chain.rpcUrl) };
}

/** Asks a local node. */
export function askNode(rpcUrl: string): ReadableChain["ask"] {
  const rpc = createLocalRpc(rpcUrl);
  return async (method, ...params): Promise<RpcAnswer> => {
    try {
      return { result: await rpc.request(method, ...params) };
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      return { error: { code: error.code, message: error.message, data: undefined } };
    }
  };
}
