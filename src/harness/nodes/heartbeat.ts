// Imported, not global: a test that installs fake timers must not stop its chains.
import { clearInterval, setInterval } from "node:timers";
import type { LocalNode } from "./nodes.ts";

/** Mines a block a second on a chain that has nothing else to do, so that its head follows the clock. */
export type Heartbeat = {
  /** Stops it. Resolves when its last block is mined. */
  pause(): Promise<void>;
  resume(): void;
};

const periodMs = 1_000;

/**
 * Starts a heartbeat, which mines with `mine`. It ends with the node, and does not keep this process alive.
 *
 * Anvil's own `--mixed-mining` does the same, but once the mode of mining was changed there is no way back to
 * it, and `evm_setAutomine(false)` holds nothing in it.
 */
export function startHeartbeat(node: Pick<LocalNode, "exited">, mine: () => Promise<void>): Heartbeat {
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> | undefined;

  async function beat(): Promise<void> {
    try {
      await mine();
    } catch {
      // Every other request to the node reports what is wrong with it.
    } finally {
      beating = undefined;
    }
  }

  const resume = () => {
    timer ??= setInterval(() => {
      beating ??= beat();
    }, periodMs).unref();
  };
  const pause = async () => {
    clearInterval(timer);
    timer = undefined;
    await beating;
  };
  resume();
  node.exited.then(pause);
  return { pause, resume };
}
