import { setTimeout as wait } from "node:timers/promises";
import { createFaultProxy, createFaults } from "../../../src/harness/faults/create-faults.ts";
import type { CallMatch } from "../../../src/harness/faults/fault-spec.ts";
import {
  type ChainFaultSetter,
  type ConnectionFaultSetter,
  createFaultSetters,
  type Faults,
} from "../../../src/harness/faults/faults.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { type Composition, compose } from "../composition.ts";
import type { Random } from "../random.ts";

/** A chain, and a proxy to its node that can cause faults. */
export type Stage = {
  composition: Composition;
  /** The URL of the proxy. */
  url: string;
  faults: Faults;
  close(): Promise<void>;
};

export async function createStage(chain: HarnessChain): Promise<Stage> {
  const composition = await compose(chain);
  const proxy = await createFaultProxy({ target: chain.rpcUrl });
  const board = createFaults({
    serviceId: "test",
    networks: { [chain.network.name]: { chain, proxy } },
    operators: [harnessAccounts.operator.address],
  });
  return {
    composition,
    url: proxy.url,
    faults: createFaultSetters(board),
    async close() {
      await proxy[Symbol.asyncDispose]();
      await composition.close();
    },
  };
}

/** The functions that a kind of fault can use. */
export type Scene = {
  random: Random;
  /** Sets faults on the service's only endpoint, or on the bad one of two. */
  on(match?: CallMatch): ConnectionFaultSetter;
  chain: ChainFaultSetter;
  clear(): Promise<void>;
  mine(blocks?: number): Promise<void>;
  advanceTime(seconds: number): Promise<unknown>;
  /** Mines a transaction of another account that reverts. */
  revertAnother(): Promise<unknown>;
  /** Resolves when a transaction is pending in the node while mining is held. */
  sent(): Promise<void>;
  /** Resolves when a transaction of the operator has been mined since the scene began. */
  mined(): Promise<void>;
  /** Resolves when a settle has been answered with status 503. */
  undecided(): Promise<void>;
  /** Resolves when the ledger contains every payment. */
  claimed(): Promise<void>;
  /** Resolves when one of these responses has said that the payment is pending. */
  pending(): Promise<void>;
  wait(ms: number): Promise<void>;
};

/**
 * @param answers the number of settles answered with status 503, and of pending ones among them
 * @param areClaimed returns true if the ledger contains every payment
 */
export async function createScene(
  { composition, faults }: Pick<Stage, "composition" | "faults">,
  random: Random,
  answers: { readonly undecided: number; readonly pending: number },
  areClaimed: () => Promise<boolean>,
): Promise<Scene> {
  const { chain } = composition;
  const { name } = chain.network;
  const transactions = await composition.operatorTransactions();
  const until = async (condition: () => Promise<boolean> | boolean) => {
    // Limited by the timeout of the test.
    while (!(await condition())) await wait(10);
  };
  return {
    random,
    on: (match) => faults.on(name, match),
    chain: faults.chain(name),
    clear: () => faults.clear(),
    mine: (blocks) => chain.mine(blocks),
    advanceTime: (seconds) => chain.advanceTime(seconds),
    async revertAnother() {
      const { treasury } = harnessAccounts;
      const nothing = { from: treasury.address, to: chain.asset.address, data: "0xdeadbeef", gas: "0x186a0" };
      await chain.node.request("eth_sendTransaction", nothing);
      await chain.node.request("evm_mine");
    },
    sent: () =>
      until(async () => {
        const status = await chain.node.request("txpool_status");
        return Number(Reflect.get(Object(status), "pending")) > 0;
      }),
    mined: () => until(async () => (await composition.operatorTransactions()) > transactions),
    undecided: () => until(() => answers.undecided > 0),
    claimed: () => until(areClaimed),
    pending: () => until(() => answers.pending > 0),
    wait: (ms) => wait(ms),
  };
}
