import { setTimeout as sleep } from "node:timers/promises";
import { RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { type Address, type Hex, isBytes32, readQuantity } from "../../protocol/hex.ts";
import { plural } from "../../protocol/token-units.ts";
import { createSerialQueue } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import type { ChainFaultSpec } from "./fault-spec.ts";

/** How often a reorganization is repeated if other blocks are mined meanwhile. */
const mostTries = 5;

type Undo = () => Promise<void>;

/** The effect of a chain fault. */
export type ChainFault = {
  /** Ends the fault; undefined for momentary ones. */
  undo: Undo | undefined;
  /** The hashes of the transactions that it hit when it was set. */
  transactions: readonly Hex[];
};

/** The RPC method whose calls count as hits while a chain fault lasts; `*` matches any characters. */
export const hitMethods: Partial<Record<ChainFaultSpec["kind"], string>> = {
  "hold-blocks": "eth_sendRawTransaction*",
  "base-fee": "eth_sendRawTransaction*",
  "empty-operator": "eth_getBalance",
};

/**
 * Returns a function that sets a fault on the chain and resolves when it is in effect.
 *
 * @throws KitError (from the returned function) if the state of the chain does not allow it, for instance if it has too
 *   few blocks for a reorganization
 */
export function createChainFaults(options: {
  chain: HarnessChain;
  /** The accounts whose gas money `empty-operator` takes. */
  operators: readonly Address[];
}): (spec: ChainFaultSpec) => Promise<ChainFault> {
  const { chain, operators } = options;
  const { node } = chain;
  const [holding, emptying] = [createOverlap(), createOverlap()];
  const raiseBaseFee = createBaseFees(chain);

  const hold = () =>
    holding(async () => {
      await chain.hold();
      return () => chain.release();
    });

  /** Returns the hashes of pending and queued transactions. */
  async function waiting(): Promise<readonly Hex[]> {
    const { pending, queued } = membersOf(await node.request("txpool_content"));
    return [pending, queued]
      .flatMap((part) => Object.values(membersOf(part)))
      .flatMap((ofSender) => Object.values(membersOf(ofSender)))
      .flatMap((transaction) => hashIn(membersOf(transaction).hash));
  }

  const headOf = async () => Number(await node.request("eth_blockNumber"));

  async function inNewestBlocks(depth: number): Promise<readonly Hex[]> {
    const head = await headOf();
    const numbers = Array.from(
      { length: depth },
      (_, index) => `0x${Math.max(0, head - index).toString(16)}`,
    );
    const blocks = await node.batch(numbers.map((number) => ["eth_getBlockByNumber", number, false]));
    return blocks.flatMap((block) => [membersOf(block).transactions].flat().flatMap(hashIn));
  }

  /**
   * Mining is held during the reorganization. If anvil mined while replacing blocks, a transaction could end up in two
   * blocks, or in a block without having any effect, or a block number could have no block. The depth counts from the head
   * after mining has stopped; counted from an earlier head, it could exceed the states that anvil keeps.
   */
  async function reorganize(depth: number): Promise<readonly Hex[]> {
    await assertDepth(chain, depth);
    const isMining = await chain.isMining();
    const undo = isMining ? await hold() : undefined;
    try {
      if (isMining) await mineWhatWasTaken();
      // Otherwise each reorganization would permanently set the chain's clock back by the blocks that it replaces.
      return await chain.keepTime(() => replaceNewest(isMining ? depth + 1 : depth));
    } catch (error) {
      throw error instanceof RpcRefusal && error.message.includes("data unavailable")
        ? stateGone(chain, depth, error)
        : error;
    } finally {
      await undo?.();
    }
  }

  /**
   * Anvil mines as many blocks as it replaces, so if the head's number differs afterwards, another block was mined in between.
   * Then the blocks are replaced again, going one block deeper unless that is the newest mark: the state that anvil keeps
   * for the last remaining block may be from that moment.
   */
  async function replaceNewest(depth: number): Promise<readonly Hex[]> {
    const transactions = new Set<Hex>();
    const last = (await headOf()) - depth;
    for (let tries = 0; tries < mostTries; tries++) {
      const head = await headOf();
      const replaced = head - Math.max(last - tries, chain.newestMark());
      for (const hash of await inNewestBlocks(replaced)) transactions.add(hash);
      await node.request("anvil_reorg", replaced, []);
      if ((await headOf()) === head) return [...transactions];
    }
    throw new KitError(
      `${chain.network.name} could not replace its newest blocks: others were mined meanwhile`,
    );
  }

  /**
   * Even after the call that stops mining has returned, anvil mines the transactions already taken from its pool, maybe in
   * several blocks. So this waits until the head has not moved for a while. It then mines one last block, which waits for
   * any block still in progress and is replaced too.
   */
  async function mineWhatWasTaken(): Promise<void> {
    let head = await headOf();
    // Bounded, so that a client that keeps mining by hand cannot prevent the fault.
    for (let looks = 0, still = 0; still < 5 && looks < 500; looks++) {
      await sleep(10);
      const next = await headOf();
      still = next === head ? still + 1 : 0;
      head = next;
    }
    await node.request("evm_mine");
  }

  async function emptyOperators(): Promise<Undo> {
    const balances = await Promise.all(
      operators.map(async (operator) => {
        const balance = readQuantity(await node.request("eth_getBalance", operator, "latest")) ?? 0n;
        return [operator, balance] as const;
      }),
    );
    const setAll = (amount: (balance: bigint) => bigint) =>
      Promise.all(balances.map(([operator, balance]) => chain.setBalance(operator, amount(balance))));
    await setAll(() => 0n);
    return async () => void (await setAll((balance) => balance));
  }

  return async (spec) => {
    switch (spec.kind) {
      case "hold-blocks":
        return { undo: await hold(), transactions: await waiting() };
      case "drop": {
        const transactions = spec.hash === undefined ? await waiting() : [spec.hash];
        await drop(chain, spec.hash);
        return { undo: undefined, transactions };
      }
      case "reorg":
        return { undo: undefined, transactions: await reorganize(spec.depth) };
      case "base-fee":
        return { undo: await raiseBaseFee(BigInt(spec.wei)), transactions: await waiting() };
      case "empty-operator":
        return { undo: await emptying(emptyOperators), transactions: [] };
    }
  };
}

/** Lets faults of one kind overlap: the last one to end restores what the first one found, in any order. */
function createOverlap(): (begin: () => Promise<Undo>) => Promise<Undo> {
  let active = 0;
  let putBack: Undo = async () => {};
  return async (begin) => {
    const undo = await begin();
    if (active++ === 0) putBack = undo;
    return async () => {
      if (--active === 0) await putBack();
    };
  };
}

function hashIn(value: unknown): readonly Hex[] {
  return isBytes32(value) ? [value] : [];
}

async function drop({ node, network }: HarnessChain, hash: Hex | undefined): Promise<void> {
  if (hash === undefined) {
    await node.request("anvil_dropAllTransactions");
  } else if ((await node.request("anvil_dropTransaction", hash)) === null) {
    throw new KitError(`No transaction ${hash} is waiting on ${network.name}`, {
      hints: ["Only what no block holds yet can be dropped: hold blocks before it is sent."],
    });
  }
}

function stateGone({ network }: HarnessChain, depth: number, cause: RpcRefusal): KitError {
  const what = `${network.name} cannot go back ${plural(depth, "block")}: its node has no state of then`;
  return new KitError(what, {
    cause,
    hints: [
      "With a seed, nodes forget some states, since the same blocks are mined again after a reset. Start a new harness, or leave out the seed.",
    ],
  });
}

/** Blocks before the latest snapshot must stay: without its block, the chain could not be restored. */
async function assertDepth({ node, network, newestMark }: HarnessChain, depth: number): Promise<void> {
  const head = Number(readQuantity(await node.request("eth_blockNumber")) ?? 0n);
  const mined = Math.max(0, head - newestMark());
  if (depth > mined) {
    const what = `${network.name} has ${plural(mined, "block")} since its start, or the last reset or snapshot`;
    throw new KitError(`${what}: too few for a reorganization of depth ${depth}`, {
      hints: ["Mine some first: with `mine` of the network in a harness, or among the chains of the studio."],
    });
  }
}

/**
 * Fixes the base fee from the next block on, which is mined immediately unless blocks are held. If there are several such
 * faults, the latest wins. When the last one ends, the base fee floats again, starting from the fee before the first.
 */
function createBaseFees(chain: HarnessChain): (wei: bigint) => Promise<Undo> {
  const fixed: { wei: bigint }[] = [];
  const inTurn = createSerialQueue();
  let before = 0n;

  async function end(fee: { wei: bigint }): Promise<void> {
    const counted = fixed.at(-1);
    fixed.splice(fixed.indexOf(fee), 1);
    const counts = fixed.at(-1);
    if (counts === undefined) await chain.freeBaseFee(before);
    else if (counts !== counted) await chain.fixBaseFee(counts.wei);
  }

  return (wei) =>
    inTurn(async () => {
      if (fixed.length === 0) before = await baseFeeOf(chain);
      const fee = { wei };
      fixed.push(fee);
      await chain.fixBaseFee(wei);
      return () => inTurn(() => end(fee));
    });
}

async function baseFeeOf({ node, network }: HarnessChain): Promise<bigint> {
  const block = await node.request("eth_getBlockByNumber", "latest", false);
  const fee = readQuantity(membersOf(block).baseFeePerGas);
  if (fee === undefined) throw new KitError(`${network.name} has no base fee`);
  return fee;
}
