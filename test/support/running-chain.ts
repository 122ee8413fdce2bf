import type { RunningHarness } from "../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../src/harness/stage/chain.ts";
import type { NetworkName } from "../../src/protocol/networks.ts";

/** A chain that a test has started. */
export function runningChain(harness: RunningHarness, network: NetworkName): HarnessChain {
  const chain = harness.chains[network];
  if (chain === undefined) throw new Error(`${network} is not running`);
  return chain;
}
