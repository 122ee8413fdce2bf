import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, type Hex, isBytes32, quantity, readQuantity } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { Chain, ChainView } from "./chain.ts";
import { createChainReader } from "./chain-reader.ts";
import { dataFeeCall, readDataFee, readTip, tipCall, usualCost } from "./fees.ts";
import { createLogReader } from "./log-reader.ts";
import { createReceiptReader, transactionCall } from "./receipt-reader.ts";
import { headCall, readHead, readSafeInteger, transactionCountCall } from "./rpc/calls.ts";
import type { RpcObserver } from "./rpc/endpoint-state.ts";
import type { FailoverPace } from "./rpc/failover.ts";
import { createHttpRpc } from "./rpc/http-rpc.ts";
import type { Rpc, RpcCall, RpcEndpoint } from "./rpc/rpc.ts";
import { createSimulations } from "./simulations.ts";

export type ChainOptions = {
  network: NetworkConfig;
  /** Simulations run as from this account: only operators may settle. */
  operator: Address;
  /** Where to ask, when it is shared with others on the same network; its own by default. See {@link connect}. */
  rpc?: Rpc;
  /** Milliseconds for one request to a node; 10 s by default. */
  timeoutMs?: number;
  /** Calls in one request to a node; 100 by default. */
  maxBatch?: number;
  /** When one of several endpoints is passed over; the usual pace where it says nothing. */
  pace?: Partial<FailoverPace>;
  /** Called for every request to an endpoint, and for every change of an endpoint's health. */
  observer?: RpcObserver;
};

/** A connection to a network's endpoints. */
export function connect(options: Omit<ChainOptions, "operator" | "rpc">): Rpc {
  const { network, timeoutMs, maxBatch, pace, observer } = options;
  return createHttpRpc({
    network: network.name,
    chainId: network.chainId,
    urls: network.rpcUrls,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(maxBatch !== undefined && { maxBatch }),
    ...(pace !== undefined && { pace }),
    ...(observer !== undefined && { observer }),
  });
}

/**
 * A network's chain by JSON-RPC. Everything one method asks goes out as one batch, and what is asked at the same
 * time shares it.
 *
 * Nothing a node says is trusted to be well formed, and no error text of a node decides anything.
 */
export function createChain(options: ChainOptions): Chain {
  const { network, operator, rpc = connect(options) } = options;
  const reader = createChainReader(rpc, network.name);
  const { ask, expect } = reader;
  const readLogs = createLogReader({ rpc, reader });

  async function countTransactions(account: Address, block: "latest" | "pending"): Promise<number> {
    const [count] = await ask([transactionCountCall(account, block)]);
    return expect("the number of an account's transactions", count, readSafeInteger);
  }

  const views = new Map<string, ChainView>();

  function viewOf({ endpoint, ask: askEndpoint }: RpcEndpoint): ChainView {
    const known = views.get(endpoint);
    if (known !== undefined) return known;
    const view = { ...createChain({ ...options, rpc: { ...rpc, ask: askEndpoint } }), endpoint };
    views.set(endpoint, view);
    return view;
  }

  return {
    network,
    operator,
    reader,
    readLogs,
    ...createSimulations(reader, { network, operator }),

    async head() {
      const [block] = await ask([headCall]);
      return expect("the newest block", block, readHead);
    },

    async blockHash(number) {
      const [block] = await ask([blockCall(number)]);
      return expect("the hash of a block", block, (result) => readBlockHash(result, number));
    },

    async blockTime(number) {
      const [block] = await ask([blockCall(number)]);
      const { timestamp } = expect("a block", block, (result) => {
        const head = readHead(result);
        return head?.number === number ? head : undefined;
      });
      return timestamp;
    },

    transactionCount: (account) => countTransactions(account, "latest"),
    pendingTransactionCount: (account) => countTransactions(account, "pending"),

    async nativeBalance(account) {
      const [balance] = await ask([{ method: "eth_getBalance", params: [account, "latest"] }]);
      return expect("the balance of an account", balance, readQuantity);
    },

    async gasMoney(accounts, usual) {
      const calls = [
        headCall,
        dataFeeCall(usual.bytes),
        tipCall,
        ...accounts.map((account) => ({ method: "eth_getBalance", params: [account, "latest"] })),
      ];
      const [block, dataFee, tip, ...balances] = await ask(calls, { optional: [tipCall] });
      const head = expect("the newest block", block, readHead);
      return {
        settleCost:
          usualCost(usual.gas, head, network, readTip(tip, network)) +
          expect("the data fee", dataFee, readDataFee),
        balances: balances.map((balance) => expect("an account's balance", balance, readQuantity)),
      };
    },

    async suggestedTip() {
      const [tip] = await ask([tipCall], { optional: [tipCall] });
      return readTip(tip, network);
    },

    async broadcast(rawTransactions, sendOptions) {
      if (rawTransactions.length === 0) return;
      const calls = rawTransactions.map((raw, index) => ({
        ...{ method: "eth_sendRawTransaction", params: [raw] },
        about: sendOptions?.hashes?.[index],
      }));
      await rpc.send(calls, sendOptions);
    },

    knows: (hashes) => knows(rpc, network.name, hashes),
    receipts: createReceiptReader(reader),

    endpoints: () => rpc.endpoints().map(viewOf),

    status: () => rpc.status(),
    probe: () => rpc.probe(),
    close: () => rpc.close(),
  };
}

/** Whether any endpoint knows one of the transactions. */
async function knows(rpc: Rpc, network: string, hashes: readonly Hex[]): Promise<boolean> {
  const calls = hashes.map(transactionCall);
  const { expect, undetermined } = createChainReader(rpc, network);
  const failures: unknown[] = [];
  const asked = rpc.endpoints();
  for (const endpoint of asked) {
    try {
      const answers = await createChainReader(endpoint, network).ask(calls);
      for (const answer of answers) {
        const isKnown = expect("a transaction", answer, (result) =>
          result === null ? false : typeof result === "object" ? true : undefined,
        );
        if (isKnown) return true;
      }
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === asked.length) throw failures[0] ?? undetermined("it serves another chain");
  return false;
}

function blockCall(number: bigint): RpcCall {
  return { method: "eth_getBlockByNumber", params: [quantity(number), false] };
}

/** The hash of the block with this number, null where there is none; undefined when it is another block. */
function readBlockHash(result: unknown, number: bigint): Hex | null | undefined {
  if (result === null) return null;
  const { number: named, hash } = membersOf(result);
  return readQuantity(named) === number && isBytes32(hash) ? hash : undefined;
}
