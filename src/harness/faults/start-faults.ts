import type { NetworkName } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import type { HarnessChain } from "../stage/chain.ts";
import { createFaults } from "./create-faults.ts";
import type { FaultBoard } from "./fault-board.ts";
import { createFaultProxy, type FaultProxy, type FaultProxyOptions } from "./fault-proxy.ts";

/** What a harness needs of faults. */
export type StartedFaults = {
  faults: FaultBoard;
  /** Where the service finds a chain: at the proxy before its node. */
  serviceRpcUrl(chain: HarnessChain): string;
  /** Before the service is replaced: what keeps answers from it ends. */
  beforeReset(): Promise<void>;
  close(): Promise<void>;
};

/** Puts a proxy before the node of each chain. */
export async function startFaults(
  chains: readonly HarnessChain[],
  { serviceId, onExchange }: Pick<FaultProxyOptions, "onExchange"> & { serviceId: string },
): Promise<StartedFaults> {
  const networks: Partial<Record<NetworkName, { chain: HarnessChain; proxy: FaultProxy }>> = {};
  await Promise.all(
    chains.map(async (chain) => {
      networks[chain.network.name] = {
        chain,
        proxy: await createFaultProxy({ target: chain.rpcUrl, onExchange }),
      };
    }),
  );
  const faults = createFaults({ networks, operators: [harnessAccounts.operator.address], serviceId });
  return {
    faults,
    serviceRpcUrl: ({ network, rpcUrl }) => networks[network.name]?.proxy.url ?? rpcUrl,
    beforeReset: () => faults.clear(),
    async close() {
      for (const { proxy } of Object.values(networks)) await proxy[Symbol.asyncDispose]();
    },
  };
}
