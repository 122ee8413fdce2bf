import { setTimeout as sleep } from "node:timers/promises";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";

/** Mines repeatedly until a promise settles. */
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
