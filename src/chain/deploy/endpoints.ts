import type { NetworkConfig } from "../../config/network-config.ts";
import type { Network } from "../../protocol/networks.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { createHttpRpc } from "../rpc/http-rpc.ts";
import type { Rpc } from "../rpc/rpc.ts";
import { causeOf } from "./explain-failure.ts";
import { requireNetwork } from "./require-network.ts";

/** A client for each RPC URL of a network by itself, none standing in for another. */
export function openEndpoints(network: Network & Pick<NetworkConfig, "rpcUrls">): readonly Rpc[] {
  const { name, chainId, rpcUrls } = network;
  return rpcUrls.map((url) => {
    const options = { network: name, chainId, urls: [url] } as const;
    return createHttpRpc(options);
  });
}

/**
 * The first RPC endpoint that answers. What is sent and what is then looked for should meet at the same node.
 *
 * @throws KitError when it serves another chain, or none answers
 */
export async function chooseEndpoint(
  network: Network & Pick<NetworkConfig, "rpcUrls">,
): Promise<Pick<Rpc, "ask">> {
  const failures: string[] = [];
  for (const [index, rpc] of openEndpoints(network).entries()) {
    try {
      await requireNetwork(rpc, network);
      return rpc;
    } catch (error) {
      if (!(error instanceof UndeterminedError)) throw error;
      failures.push(`Endpoint ${index + 1}: ${causeOf(error)}`);
    }
  }
  throw new UndeterminedError(`No RPC endpoint of ${network.name} answers`, { hints: failures });
}
