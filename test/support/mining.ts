import { setTimeout as sleep } from "node:timers/promises";
import type { HarnessChain } from "../../src/harness/chain.ts";

/** Stops the chain from mining by itself, until {@link HarnessChain.mine} or {@link resumeMining}. */
export async function holdMining({ node }: HarnessChain): Promise<void> {
  await node.request("evm_setAutomine", false);
  await node.request("evm_setIntervalMining", 0);
}

/** Mines a block a second again. Anvil knows no way back to also mining each transaction at once. */
export async function resumeMining({ node }: HarnessChain): Promise<void> {
  await node.request("evm_setIntervalMining", 1);
}

/** Mines again and again while something is awaited. */
export async function whileMining<T>(chain: HarnessChain, awaited: Promise<T>): Promise<T> {
  let done = false;
  const mining = (async () => {
    while (!done) {
      await chain.mine();
      await sleep(20);
    }
  })();
  try {
    return await awaited;
  } finally {
    done = true;
    await mining;
  }
}
