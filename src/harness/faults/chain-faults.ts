import { KitError } from "../../errors.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { readQuantity } from "../../rpc/read-hex.ts";
import { membersOf } from "../../util/json.ts";
import type { HarnessChain } from "../stage/chain.ts";
import type { ChainFaultSpec } from "./fault-spec.ts";

type Undo = () => Promise<void>;

/** What a fault of a chain did, and how to end it: undefined for what has happened and is over. */
export type ChainFault = { undo: Undo | undefined };

/** Makes a chain do what chains do when they are in trouble. */
export type ChainFaults = {
  /**
   * Makes it so, and resolves when it is.
   *
   * @throws KitError when the chain is not in a state for it: not as deep as the reorganization, for instance.
   */
  apply(spec: ChainFaultSpec): Promise<ChainFault>;
};

export function createChainFaults(options: {
  chain: HarnessChain;
  /** Whose gas money is taken by `empty-operator`. */
  operators: readonly Address[];
}): ChainFaults {
  const { chain, operators } = options;
  const { node } = chain;
  const [holding, pricing, emptying] = [createOverlap(), createOverlap(), createOverlap()];

  const hold = () =>
    holding(async () => {
      await chain.hold();
      return () => chain.release();
    });

  /**
   * Anvil goes on mining while it replaces blocks, and then has one transaction in two of them, or one in a block that
   * changed nothing. So nothing is mined meanwhile; a last block waits for what was being mined, and is replaced too.
   */
  async function reorganize(depth: number): Promise<void> {
    await assertDepth(chain, depth);
    const isMining = (await node.request("anvil_getAutomine")) === true;
    const held = await hold();
    try {
      if (isMining) await node.request("evm_mine");
      await node.request("anvil_reorg", isMining ? depth + 1 : depth, []);
    } finally {
      await held.undo?.();
    }
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

  return {
    async apply(spec) {
      switch (spec.kind) {
        case "hold-blocks":
          return hold();
        case "drop":
          await drop(chain, spec.hash);
          return { undo: undefined };
        case "reorg":
          await reorganize(spec.depth);
          return { undo: undefined };
        case "base-fee":
          return pricing(() => raiseBaseFee(chain, BigInt(spec.wei)));
        case "empty-operator":
          return emptying(emptyOperators);
      }
    },
  };
}

/** Lets faults of one kind overlap: the last one to end puts back what the first one found, in whatever order. */
function createOverlap(): (begin: () => Promise<Undo>) => Promise<ChainFault> {
  let active = 0;
  let putBack: Undo = async () => {};
  return async (begin) => {
    const undo = await begin();
    if (active++ === 0) putBack = undo;
    return {
      async undo() {
        if (--active === 0) await putBack();
      },
    };
  };
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

async function assertDepth({ node, network }: HarnessChain, depth: number): Promise<void> {
  const head = readQuantity(await node.request("eth_blockNumber")) ?? 0n;
  if (BigInt(depth) >= head) {
    throw new KitError(`${network.name} has ${head} blocks: too few for a reorganization of depth ${depth}`, {
      hints: ["Mine some first."],
    });
  }
}

/** From the next block on, which is mined at once unless blocks are held; it falls by an eighth with each empty one. */
async function raiseBaseFee({ node, network }: HarnessChain, wei: bigint): Promise<() => Promise<void>> {
  const block = await node.request("eth_getBlockByNumber", "latest", false);
  const before = readQuantity(membersOf(block).baseFeePerGas);
  if (before === undefined) throw new KitError(`${network.name} has no base fee`);
  const set = async (fee: bigint) => {
    await node.request("anvil_setNextBlockBaseFeePerGas", `0x${fee.toString(16)}`);
    if ((await node.request("anvil_getAutomine")) === true) await node.request("evm_mine");
  };
  await set(wei);
  return () => set(before);
}
