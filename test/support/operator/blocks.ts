import { setTimeout as sleep } from "node:timers/promises";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { createSerialQueue } from "../../../src/util/concurrency.ts";

/** The base fee of quiet times, in wei per gas: that of Base on a busy day. */
export const quietFee = 50_000_000n;

/** The blocks of a chain, mined one after the other. */
export type Blocks = {
  /** Mines no block until the returned function is called. */
  hold(): () => void;
  /** Sets the base fee of every block, in wei per gas, until the returned function is called. */
  ask(fee: bigint): () => void;
  /** Runs something between two blocks: anvil cannot mine and replace blocks at the same time. */
  between<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when this many more blocks were mined. */
  next(count: number): Promise<void>;
  stop(): Promise<void>;
};

/** Mines a block every `everyMs` milliseconds from now on, and at no other time. */
export async function startBlocks({ node }: HarnessChain, everyMs: number): Promise<Blocks> {
  const between = createSerialQueue();
  let isHeld = false;
  let fee = quietFee;
  let mined = 0;
  let running = true;
  await node.request("evm_setIntervalMining", 0);
  const mining = (async () => {
    while (running) {
      await sleep(everyMs);
      if (isHeld) continue;
      await between(async () => {
        // Otherwise it would depend on how full the blocks are.
        await node.request("anvil_setNextBlockBaseFeePerGas", `0x${fee.toString(16)}`);
        await node.request("evm_mine");
      });
      mined++;
    }
  })();
  return {
    hold() {
      isHeld = true;
      return () => {
        isHeld = false;
      };
    },
    ask(asked) {
      fee = asked;
      return () => {
        fee = quietFee;
      };
    },
    between,
    async next(count) {
      const target = mined + count;
      while (mined < target && running) await sleep(everyMs / 4);
    },
    async stop() {
      running = false;
      await mining;
    },
  };
}
