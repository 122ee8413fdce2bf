import type { Chains } from "../../src/harness/setup/chains.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import type { NetworkName } from "../../src/protocol/networks.ts";

/** A chain that a test has started. */
export function runningChain({ chains }: Pick<Chains, "chains">, network: NetworkName): HarnessChain {
  const chain = chains[network];
  if (chain === undefined) throw new Error(`${network} is not running`);
  return chain;
}
