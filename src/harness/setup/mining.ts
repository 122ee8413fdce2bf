// Imported instead of global, so that a test's fake timers do not stop its chains.
import { clearInterval, setInterval } from "node:timers";
import type { LocalCall } from "../../chain/rpc/local-rpc.ts";
import { quantity, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LocalNode } from "../nodes/nodes.ts";

/** The maximum number of blocks mined in one call; more would take the node seconds. */
const mostBlocks = 10_000;

/** How often to try to mine a block with a given fee. */
const mostTries = 10;

/** Controls when a chain mines blocks: with each transaction, with each heartbeat, at a fixed fee, or not at all. */
export function createMining(node: LocalNode, { ownClock }: { ownClock: boolean }) {
  // A chain with its own clock stands still between transactions.
  const heartbeat = ownClock ? undefined : startHeartbeat(node, beat);

  /** True while mining is held, until `release`. */
  let isHeld = false;
  /** The fixed base fee of every block, in wei per gas; undefined while the chain computes it. */
  let fixedFee: bigint | undefined;

  const feeCall = (wei: bigint): LocalCall => ["anvil_setNextBlockBaseFeePerGas", quantity(wei)];

  async function mineBlocks(blocks: number): Promise<void> {
    const fee = fixedFee;
    if (fee === undefined) {
      await (blocks === 1 ? node.request("evm_mine") : node.request("anvil_mine", quantity(blocks)));
      return;
    }
    // Not in one batch, because its calls do not wait for one another.
    for (let mined = 0; mined < blocks; mined++) await mineAt(fee);
    // In case another client mines the next block.
    if (fixedFee !== undefined) await node.batch([feeCall(fixedFee)]);
  }

  /**
   * Mines a block at a fee. Anvil only lets us set the fee of the next block, and forgets it if a block already in progress is
   * finished first. Then another block is mined, but not forever, so that a client that keeps mining cannot delay a fault.
   */
  async function mineAt(wei: bigint): Promise<void> {
    for (let tries = 0; tries < mostTries; tries++) {
      const [, mined] = await node.batch([feeCall(wei), ["evm_mine_detailed"]]);
      const [newest] = [mined].flat();
      if (readQuantity(membersOf(newest).baseFeePerGas) === wei) return;
    }
  }

  /** Unless the fee is fixed, mines no block while automine is off, whoever turned it off: transactions are to be held. */
  async function beat(): Promise<void> {
    if (fixedFee !== undefined || (await node.request("anvil_getAutomine")) === true) await mineBlocks(1);
  }

  /**
   * Resumes automatic mining: with each transaction, or with each heartbeat if the fee is fixed. Pending transactions must be
   * mined before; otherwise anvil would take them from its pool again, for a second block.
   */
  async function goOnMining(): Promise<void> {
    if (fixedFee === undefined || heartbeat === undefined) await node.request("evm_setAutomine", true);
    heartbeat?.resume();
  }

  return {
    mineBlocks,
    /** Mines a block unless mining is held. */
    async mineUnlessHeld() {
      if (!isHeld) await mineBlocks(1);
    },
    /** Pauses the heartbeat. */
    pause: async () => void (await heartbeat?.pause()),
    resume() {
      if (!isHeld) heartbeat?.resume();
    },
    /** Forgets holds and fixed fees, for a reset of the chain. */
    forget() {
      isHeld = false;
      fixedFee = undefined;
    },
    /** The operations that a chain exposes. */
    control: {
      async mine(blocks = 1) {
        if (!Number.isSafeInteger(blocks) || blocks < 1 || blocks > mostBlocks) {
          throw new KitError(`From 1 to ${mostBlocks} blocks are mined at a time, not ${blocks}`);
        }
        await mineBlocks(blocks);
      },
      isMining: async () =>
        !isHeld && (fixedFee !== undefined || (await node.request("anvil_getAutomine")) === true),
      /** Stops automatic mining until {@link release}; transactions wait in the pool. */
      async hold() {
        isHeld = true;
        await heartbeat?.pause();
        await node.request("evm_setIntervalMining", 0);
      },
      /** Mines all pending transactions and resumes automatic mining. */
      async release() {
        isHeld = false;
        await mineBlocks(1);
        await goOnMining();
      },
      /**
       * Fixes the base fee, in wei per gas, from the next block on. That block is mined immediately unless mining is held.
       * Meanwhile blocks are mined once a second, because blocks mined with each transaction could not be given the fee. A
       * chain with its own clock mines as before, so its fee falls again with every transaction.
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
      /** Lets the chain compute the base fee again, starting from `wei` per gas. */
      async freeBaseFee(wei: bigint) {
        // A block mined by the heartbeat would set the fixed fee for the next block again.
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
 * Starts a heartbeat that calls `mine` every second, so that the head of an idle chain follows the clock. It ends with the
 * node, and does not keep this process alive.
 *
 * Anvil's own `--mixed-mining` does the same. But once the mining mode is changed there is no way back to it, and
 * `evm_setAutomine(false)` does not stop its mining.
 */
export function startHeartbeat(node: LocalNode, mine: () => Promise<void>) {
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> | undefined;
  let hasEnded = false;

  async function beat(): Promise<void> {
    try {
      await mine();
    } catch {
      // If something is wrong with the node, all other requests report it.
    } finally {
      beating = undefined;
    }
  }

  const resume = () => {
    if (hasEnded) return;
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
  node.exited.then(() => {
    hasEnded = true;
    return pause();
  });
  return {
    /** Stops the heartbeat. Resolves when its last block is mined. */
    pause,
    resume,
  };
}
