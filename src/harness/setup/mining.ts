// Imported, not global: a test that installs fake timers must not stop its chains.
import { clearInterval, setInterval } from "node:timers";
import type { LocalCall } from "../../chain/rpc/local-rpc.ts";
import { quantity, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LocalNode } from "../nodes/nodes.ts";

/** The most blocks that are mined at once: more take the node seconds. */
const mostBlocks = 10_000;

/** How often a block is mined that is to have a fee. */
const mostTries = 10;

/** How the blocks of one chain come: as transactions come, with each heartbeat, at a fixed fee, or not at all. */
export function createMining(node: LocalNode, { ownClock }: { ownClock: boolean }) {
  // A chain with a clock of its own stands still between transactions.
  const heartbeat = ownClock ? undefined : startHeartbeat(node, beat);

  /** True if blocks wait for `release`. */
  let isHeld = false;
  /** The base fee of every block, in wei per gas; undefined while the chain decides. */
  let fixedFee: bigint | undefined;

  const feeCall = (wei: bigint): LocalCall => ["anvil_setNextBlockBaseFeePerGas", quantity(wei)];

  async function mineBlocks(blocks: number): Promise<void> {
    const fee = fixedFee;
    if (fee === undefined) {
      await (blocks === 1 ? node.request("evm_mine") : node.request("anvil_mine", quantity(blocks)));
      return;
    }
    // Not in one request: the calls of a batch do not wait for one another.
    for (let mined = 0; mined < blocks; mined++) await mineAt(fee);
    // For a block that another client mines.
    if (fixedFee !== undefined) await node.batch([feeCall(fixedFee)]);
  }

  /**
   * Mines a block at a fee. Anvil can be given that of the next block only, and forgets even that when a block is done which it was
   * making meanwhile. Then another one is mined, but not for ever: whoever mines without end must not hold up a fault.
   */
  async function mineAt(wei: bigint): Promise<void> {
    for (let tries = 0; tries < mostTries; tries++) {
      const [, mined] = await node.batch([feeCall(wei), ["evm_mine_detailed"]]);
      const [newest] = [mined].flat();
      if (readQuantity(membersOf(newest).baseFeePerGas) === wei) return;
    }
  }

  /** A chain whose automatic mining is switched off, by whomever, gets no blocks: its transactions are to be held. */
  async function beat(): Promise<void> {
    if (fixedFee !== undefined || (await node.request("anvil_getAutomine")) === true) await mineBlocks(1);
  }

  /**
   * Mines by itself from then on: as transactions come, or at a fixed fee with each heartbeat. What waits is to be mined before,
   * or anvil would take it from its pool once more, for a second block.
   */
  async function goOnMining(): Promise<void> {
    if (fixedFee === undefined || heartbeat === undefined) await node.request("evm_setAutomine", true);
    heartbeat?.resume();
  }

  return {
    mineBlocks,
    /** Mines a block, unless blocks are held back. */
    async mineUnlessHeld() {
      if (!isHeld) await mineBlocks(1);
    },
    /** Ends the heartbeat's part for a while. */
    pause: async () => void (await heartbeat?.pause()),
    resume() {
      if (!isHeld) heartbeat?.resume();
    },
    /** The chain has begun anew. */
    forget() {
      isHeld = false;
      fixedFee = undefined;
    },
    /** The operations that a chain offers its users. */
    control: {
      async mine(blocks = 1) {
        if (!Number.isSafeInteger(blocks) || blocks < 1 || blocks > mostBlocks) {
          throw new KitError(`From 1 to ${mostBlocks} blocks are mined at a time, not ${blocks}`);
        }
        await mineBlocks(blocks);
      },
      isMining: async () =>
        !isHeld && (fixedFee !== undefined || (await node.request("anvil_getAutomine")) === true),
      /** Mines nothing more by itself, until {@link release}: transactions wait in the pool. */
      async hold() {
        isHeld = true;
        await heartbeat?.pause();
        await node.request("evm_setIntervalMining", 0);
      },
      /** Mines what waits, and from now on each transaction as it comes. */
      async release() {
        isHeld = false;
        await mineBlocks(1);
        await goOnMining();
      },
      /**
       * Has every block cost so many wei per gas, from the next one on, which is mined at once unless mining is held. Blocks
       * come with the clock meanwhile, one a second: with each transaction they could not be given their fee. A chain with
       * a clock of its own mines as before, and there the fee falls again with every transaction.
       */
      async fixBaseFee(wei: bigint) {
        fixedFee = wei;
        if (isHeld) return void (await node.batch([feeCall(wei)]));
        if (heartbeat !== undefined) {
          await heartbeat.pause();
          await node.request("evm_setIntervalMining", 0);
        }
        await mineBlocks(1);
        await goOnMining();
      },
      /** Lets the chain decide again what blocks cost, from so many wei per gas on. */
      async freeBaseFee(wei: bigint) {
        // What it mines would give the next block the fixed fee once more.
        await heartbeat?.pause();
        fixedFee = undefined;
        if (isHeld) return void (await node.batch([feeCall(wei)]));
        await mineAt(wei);
        await goOnMining();
      },
    },
  };
}

const periodMs = 1_000;

/**
 * Starts a heartbeat, which mines a block a second with `mine` on a chain that has nothing else to do, so that its head follows the
 * clock. It ends with the node, and does not keep this process alive.
 *
 * Anvil's own `--mixed-mining` does the same, but once the mode of mining was changed there is no way back to
 * it, and `evm_setAutomine(false)` holds nothing in it.
 */
export function startHeartbeat(node: LocalNode, mine: () => Promise<void>) {
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
  return {
    /** Stops it. Resolves when its last block is mined. */
    pause,
    resume,
  };
}
