import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, type Hex, isBytes, isBytes32, quantity, readQuantity } from "../protocol/hex.ts";
import { expiryMarginSeconds } from "../protocol/refusals.ts";
import { UndeterminedError } from "../util/errors.ts";
import { membersOf } from "../util/json.ts";
import type { Chain, ChainView, Simulation, Transaction } from "./chain.ts";
import { askViews, type ChainReader, createChainReader, expectWord } from "./chain-reader.ts";
import {
  dataFeeCall,
  feeHistoryCall,
  larger,
  readDataFee,
  readFeeHistory,
  readTip,
  smaller,
  tipCall,
  usualCost,
} from "./fees.ts";
import { createLogReader, createReceiptReader, transactionCall } from "./logs-and-receipts.ts";
import { decodeRevert, type Revert, readRevertData } from "./revert.ts";
import { headCall, nativeBalanceCall, readHead, readSafeInteger, transactionCountCall } from "./rpc/calls.ts";
import { createHttpRpc, type HttpRpcOptions } from "./rpc/http-rpc.ts";
import type { Rpc, RpcAnswer, RpcCall, RpcEndpoint } from "./rpc/rpc.ts";
import {
  balanceOf,
  callViews,
  codeOf,
  encodeIsValidSignature,
  isValidSignatureSelector,
  readViews,
  viewGas,
} from "./views.ts";

/** The options for a network's endpoints; `observer` is called for every request to one. */
type ConnectOptions = Pick<HttpRpcOptions, "timeoutMs" | "maxBatch" | "pace" | "observer"> & {
  network: NetworkConfig;
};

export type ChainOptions = ConnectOptions & {
  /** Simulations run from this account, because only operators may settle. */
  operator: Address;
  /** A connection shared with other chains of the network; a new one by default. See {@link connect}. */
  rpc?: Rpc;
};

/** Connects to a network's endpoints. */
export function connect({ network: { name, chainId, rpcUrls }, ...options }: ConnectOptions): Rpc {
  return createHttpRpc({ ...options, network: name, chainId, urls: rpcUrls });
}

/**
 * Creates a network's chain over JSON-RPC. The calls of one method go out as one batch, which concurrent methods share.
 *
 * Nothing that a node returns is trusted to be well formed, and no decision depends on a node's error text.
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
      const [balance] = await ask([nativeBalanceCall(account)]);
      return expect("the balance of an account", balance, readQuantity);
    },

    async gasMoney(accounts, usual) {
      const calls = [headCall, dataFeeCall(usual.bytes), tipCall, ...accounts.map(nativeBalanceCall)];
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

    async highestFees() {
      const [block, tip, history] = await ask([headCall, tipCall, feeHistoryCall], {
        optional: [tipCall, feeHistoryCall],
      });
      const { baseFeePerGas } = expect("the newest block", block, readHead);
      const recent = readFeeHistory(history);
      return {
        baseFeePerGas: larger(baseFeePerGas, recent.baseFeePerGas),
        tip: larger(readTip(tip, network), recent.tip),
      };
    },

    async broadcast(rawTransactions, sendOptions) {
      if (rawTransactions.length === 0) return;
      const calls = rawTransactions.map((raw, index) => ({
        method: "eth_sendRawTransaction",
        params: [raw],
        about: sendOptions?.hashes?.[index],
      }));
      await rpc.send(calls, sendOptions);
    },

    knows: (hashes) => knows(rpc, network.name, hashes),
    receipts: createReceiptReader(reader),

    endpoints: () => rpc.endpoints().map(viewOf),
    close: () => rpc.close(),
  };
}

/** Returns true if any endpoint knows one of the transactions. */
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

/** Returns the hash of the block with this number, null if there is none; undefined if it is another block. */
function readBlockHash(result: unknown, number: bigint): Hex | null | undefined {
  if (result === null) return null;
  const { number: named, hash } = membersOf(result);
  return readQuantity(named) === number && isBytes32(hash) ? hash : undefined;
}

/** A wallet's answer for a valid signature: the selector of the call (EIP-1271). */
const walletYes = `${isValidSignatureSelector}${"0".repeat(56)}`;

/** The gas that the facilitator contract gives a token for a pull (PULL_GAS); a wallet gets no more for its check. */
const walletGas = 250_000;

/** The gas that the facilitator contract gives the factory of a wallet (DEPLOY_GAS). */
const factoryGas = 1_000_000;

/** Implements the simulations of {@link Chain}. */
function createSimulations(
  reader: ChainReader,
  { network, operator }: { network: NetworkConfig; operator: Address },
): Pick<Chain, "simulate" | "simulateFrom" | "askWallet"> {
  const { ask, expect } = reader;
  const gasMoneyCall = nativeBalanceCall(operator);

  /** Returns why a simulated transaction reverted; undefined if it succeeded. */
  function readSimulation(what: string, answer: RpcAnswer | undefined): Revert | undefined {
    const revertData = answer?.error && readRevertData(answer.error);
    if (revertData !== undefined) return decodeRevert(revertData);
    expect(what, answer, (result) => (isBytes(result) ? result : undefined));
    return undefined;
  }

  /** Runs both in one block, with a time shortly after the newest block's, because it must be later than any block's. */
  async function seriesOf(
    before: Transaction & { from: Address },
    transaction: Transaction,
  ): Promise<RpcCall> {
    const [block] = await ask([headCall]);
    const { timestamp } = expect("the newest block", block, readHead);
    const calls = [before, { ...transaction, from: operator }].map(({ from, to, data, gas }) => ({
      from,
      to,
      data,
      gas: quantity(gas),
    }));
    const blockOverrides = { time: quantity(timestamp + expiryMarginSeconds) };
    return { method: "eth_simulateV1", params: [{ blockStateCalls: [{ blockOverrides, calls }] }, "latest"] };
  }

  async function simulateFrom(
    from: Address,
    transaction: Transaction,
    id?: Hex,
  ): Promise<Revert | undefined> {
    const [simulation] = await ask([{ ...callOf(from, transaction), about: id }]);
    return readSimulation("simulating a transaction", simulation);
  }

  /** Returns why a transaction would have no effect; empty data if it gives no reason, as when it uses up all its gas. */
  async function whyWithoutEffect(transaction: Transaction, id: Hex | undefined): Promise<Revert> {
    const silence: Revert = { kind: "unknown", data: "0x" };
    try {
      return (await simulateFrom(operator, transaction, id)) ?? silence;
    } catch (error) {
      // It is certain that it has no effect, even without a reason.
      if (error instanceof UndeterminedError) return silence;
      throw error;
    }
  }

  return {
    async simulate(
      transaction,
      { payer, asset, withFunds, bounds = [], withPayerCode = withFunds, effect, before, id },
    ) {
      const simulate = () =>
        before === undefined ? callOf(operator, transaction) : seriesOf(before, transaction);
      const read = bounds.filter((bound) => typeof bound !== "bigint");
      const ofPayer = withPayerCode ? [codeOf(payer), balanceOf(asset, payer), ...read] : [];
      const views = [...ofPayer, ...(effect?.views ?? [])];
      // Undefined for whatever is not requested; those are left out of the calls.
      const [simulation, viewed, ...gasMoney] = [
        effect === undefined ? { ...(await simulate()), about: id } : undefined,
        views.length > 0 ? { ...callViews(views, viewGas), about: id } : undefined,
        ...(withFunds ? [gasMoneyCall, tipCall] : []),
      ];
      const calls = [headCall, simulation, viewed, ...gasMoney].filter((call) => call !== undefined);
      // Not every node can simulate several transactions.
      const optional = [tipCall, before && simulation].filter((call) => call !== undefined);
      const answers = await ask(calls, { optional });
      const answerTo = (call: RpcCall | undefined) =>
        call === undefined ? undefined : answers[calls.indexOf(call)];
      const head = expect("the newest block", answerTo(headCall), readHead);
      const { blockNumber, results } =
        viewed === undefined
          ? { blockNumber: head.number, results: [] }
          : expect("the payer and the effect", answerTo(viewed), (result) => readViews(result, views.length));
      const [code, balance, ...bounded] = results.slice(0, ofPayer.length);
      const payerCode = withPayerCode ? code?.codeHash : undefined;
      const outcome = { payerCode, ...(await readOutcome()) };
      // If the asset is not a token, there is no balance to read.
      const isReverted = outcome.revert !== undefined || typeof outcome.before === "object";
      if (!withFunds || isReverted) return { head, funds: undefined, ...outcome };
      return {
        // The calls of a batch may see different blocks, or even different nodes behind a load balancer.
        head: blockNumber < head.number ? { ...head, number: blockNumber } : head,
        funds: {
          payer: [
            BigInt(expectWord(reader, "balanceOf of the asset", balance)),
            ...bounded.map((bound) =>
              BigInt(expectWord(reader, "what the payer can pay of the asset", bound)),
            ),
            ...bounds.filter((bound) => typeof bound === "bigint"),
          ].reduce((least, most) => smaller(least, most)),
          operator: expect("the operator's balance", answerTo(gasMoneyCall), readQuantity),
          tip: readTip(answerTo(tipCall), network),
        },
        ...outcome,
      };

      async function readOutcome(): Promise<Pick<Simulation, "revert" | "before">> {
        if (effect !== undefined) {
          const isThere = effect.isThere(results.slice(ofPayer.length));
          return { revert: isThere ? undefined : await whyWithoutEffect(transaction, id) };
        }
        if (before !== undefined) return readSeries(answerTo(simulation));
        return { revert: readSimulation("simulating settle", answerTo(simulation)) };
      }
    },

    simulateFrom,

    async askWallet(payer, digest, signature, id, deployment) {
      const asked = { target: payer, data: encodeIsValidSignature(digest, signature) };
      const { factory: target, factoryCalldata: data } = deployment ?? {};
      const first = target && data && { target, data, gas: factoryGas, changes: true };
      const results = await askViews(reader, first ? [first, asked] : [asked], walletGas, id);
      const wallet = results.at(-1);
      if (wallet?.codeHash == null) return "no_code";
      return wallet.word === walletYes ? "accepted" : "refused";
    },
  };
}

/** Parses the result of two transactions in a row (`eth_simulateV1`). */
function readSeries(answer: RpcAnswer | undefined): Pick<Simulation, "revert" | "before"> {
  const [block] = Array.isArray(answer?.result) ? answer.result : [];
  const { calls } = membersOf(block);
  const [first, second] = (Array.isArray(calls) ? calls : []).map(readCall);
  if (first === undefined || second === undefined) return { revert: undefined, before: "unknown" };
  if (first !== "succeeded") return { revert: undefined, before: first };
  return { revert: second === "succeeded" ? undefined : second };
}

function readCall(call: unknown): Revert | "succeeded" | undefined {
  const { status, returnData } = membersOf(call);
  if (status === "0x1") return "succeeded";
  return status === "0x0" && isBytes(returnData) ? decodeRevert(returnData) : undefined;
}

function callOf(from: Address, { to, data, gas }: Transaction): RpcCall {
  return { method: "eth_call", params: [{ from, to, data, gas: quantity(gas) }, "latest"] };
}
