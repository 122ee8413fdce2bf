import { type LocalNode, startNode } from "../../../src/harness/nodes/nodes.ts";
import { startHeartbeat } from "../../../src/harness/setup/mining.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import { type BuiltInNetworkName, networks } from "../../../src/protocol/networks.ts";
import { startWatchdog } from "../../../src/util/watchdog.ts";

/** Empty nodes: chains before anything is deployed. */
export async function startBareChains<const N extends BuiltInNetworkName>(
  names: readonly N[],
): Promise<{
  nodes: Readonly<Record<N, LocalNode>>;
  /** Holds mining on a chain until the returned function is called. */
  hold(name: N): Promise<() => Promise<void>>;
  stop(): Promise<void>;
}> {
  const watchdog = startWatchdog();
  const nodes = await Promise.all(
    names.map(async (name) => {
      const node = await startNode({ name, chainId: networks[name].chainId, watchdog });
      // A node of the harness does not mine by itself by default.
      await node.request("evm_setAutomine", true);
      return [name, node, startHeartbeat(node, async () => void (await node.request("evm_mine")))] as const;
    }),
  );
  return {
    nodes: Object.fromEntries(nodes.map(([name, node]) => [name, node])) as Record<N, LocalNode>,
    async hold(name) {
      const [, node, heartbeat] = nodes.find(([one]) => one === name) ?? [];
      await heartbeat?.pause();
      await node?.request("evm_setAutomine", false);
      await node?.request("evm_setIntervalMining", 0);
      return async () => {
        await node?.request("evm_setAutomine", true);
        await node?.request("evm_mine");
        heartbeat?.resume();
      };
    },
    async stop() {
      await Promise.all(nodes.map(([, , heartbeat]) => heartbeat.pause()));
      await Promise.all(nodes.map(([, node]) => node.stop()));
      await watchdog.close();
    },
  };
}

/** Sets an account's native balance, in wei. */
export async function setBalance(node: LocalNode, account: Address, wei: bigint): Promise<void> {
  await node.request("anvil_setBalance", account, `0x${wei.toString(16)}`);
}
