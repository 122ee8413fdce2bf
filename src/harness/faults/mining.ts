import type { LocalNode } from "../nodes.ts";

/** Whether a node mines by itself. */
export type Mining = {
  readonly held: boolean;
  /**
   * Stops the node from mining by itself, until the function that it gives is called. Held twice, it goes on with the
   * second release.
   */
  hold(): Promise<() => Promise<void>>;
  /** Ends the mining of this process, for a node that is about to stop. */
  stop(): void;
};

/** As the nodes of the harness do it by themselves. */
const blockTimeMs = 1_000;

/**
 * Holds and releases the mining of a node. A node of the harness mines every transaction at once, and every second
 * without any; once stopped it can be brought back to the first alone, so the second is then done from here.
 */
export function createMining(node: LocalNode): Mining {
  let holds = 0;
  let ticking: NodeJS.Timeout | undefined;

  function tick(): void {
    clearInterval(ticking);
    ticking = setInterval(() => {
      // A node that does not answer has ended, and whoever runs it knows.
      node.request("evm_mine").catch(() => clearInterval(ticking));
    }, blockTimeMs).unref();
  }

  return {
    get held() {
      return holds > 0;
    },

    async hold() {
      holds++;
      clearInterval(ticking);
      await node.request("evm_setAutomine", false);
      await node.request("evm_setIntervalMining", 0);
      let released = false;
      return async () => {
        if (released) return;
        released = true;
        if (--holds > 0) return;
        await node.request("evm_setAutomine", true);
        await node.request("evm_mine");
        tick();
      };
    },

    stop: () => clearInterval(ticking),
  };
}
