import type { NetworkConfig } from "../config/serve-config.ts";
import type { WalletProof } from "../methods/refuse-signature.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { WalletDeployment } from "../protocol/signed-payment.ts";
import { UndeterminedError } from "../util/errors.ts";
import type { ChainReader } from "./chain-reader.ts";
import type { LogReader, ReceiptReader } from "./logs-and-receipts.ts";
import type { Revert } from "./revert.ts";
import type { Head } from "./rpc/calls.ts";
import type { ViewCall, ViewResult } from "./views.ts";

export type Transaction = { to: Address; data: Hex; gas: bigint };

/** An upper limit on what a payer can pay of an asset, in its smallest unit: a known amount, or a view that returns it. */
export type Bound = bigint | ViewCall;

/** The funds that a settling transaction depends on. */
export type Funds = {
  /** The payer's spendable amount, in the asset's smallest unit: the balance, or less if a bound is lower. */
  payer: bigint;
  /** The operator's native balance, in wei. */
  operator: bigint;
  /** See {@link Chain.suggestedTip}. */
  tip: bigint;
};

/** The native balances of some accounts, and the cost of a settlement. */
export type GasMoney = {
  /** In wei, in the order of the given accounts. */
  balances: readonly bigint[];
  /** The current cost of settling one payment, in wei. */
  settleCost: bigint;
};

/**
 * The expected effect of a transaction that may change nothing without reverting: reads before it, the call itself
 * (see `ViewCall.changes`), and reads after it.
 */
export type Effect = {
  views: readonly ViewCall[];
  /** Returns true if the results of `views` show the effect. */
  isThere(results: readonly ViewResult[]): boolean;
};

/** The simulated result of `settle`, with the block it was simulated on. */
export type Simulation = {
  /** Its `number` is never above the block at which the payer's balance was read. */
  head: Head;
  /** The funds to settle with; read only on request. */
  funds: Funds | undefined;
  /**
   * The hash of the code at the payer's address, which the token asks about the signature; null if there is none.
   * Accounts with the same delegate (EIP-7702) have the same hash. Undefined if it was not requested.
   */
  payerCode: Hex | null | undefined;
  /** Why it would revert or have no effect; undefined if it would succeed. */
  revert: Revert | undefined;
  /**
   * Set if the transaction before this one cannot be run: a `Revert` if it would revert itself, "unknown" if the node
   * cannot simulate several transactions. `revert` is then undefined.
   */
  before?: Revert | "unknown" | undefined;
};

/**
 * The chain of one network. Every method costs one HTTP request (less if concurrent calls share a JSON-RPC batch, more
 * if a call does not fit in one) and throws {@link UndeterminedError} if the chain gave no usable answer. A revert is
 * a result, not an error.
 */
export type Chain = {
  readonly network: NetworkConfig;
  /** Simulations run from this account, because only operators may settle. */
  readonly operator: Address;
  /** For reads that have no method of their own. */
  readonly reader: ChainReader;
  readonly readLogs: LogReader;
  /**
   * Runs a transaction of the operator with `eth_call` on the newest block. The payer's code is always read with the
   * funds, and without them on request. If it reverts, no funds are returned, because the asset may not be a token.
   */
  simulate(
    transaction: Transaction,
    options: {
      /** The payer of the payment it settles, and the asset. */
      payer: Address;
      asset: Address;
      withFunds: boolean;
      /** Upper limits on the payer's funds besides the balance. */
      bounds?: readonly Bound[] | undefined;
      withPayerCode?: boolean;
      /** If given, it is checked instead of a revert. */
      effect?: Effect | undefined;
      /** A call from another account that runs first. */
      before?: (Transaction & { from: Address }) | undefined;
      /** The settlement's id, for observers. */
      id?: Hex | undefined;
    },
  ): Promise<Simulation>;
  /** Returns why a transaction of an account would revert now; undefined if it would succeed. */
  simulateFrom(account: Address, transaction: Transaction, id?: Hex): Promise<Revert | undefined>;
  /**
   * Asks the payer's code about a signature (EIP-1271), as the token would. `id` is the settlement's id.
   *
   * @param deployment deploys that code first
   */
  askWallet(
    payer: Address,
    digest: Hex,
    signature: Hex,
    id?: Hex,
    deployment?: WalletDeployment,
  ): Promise<WalletProof>;
  head(): Promise<Head>;
  /** Returns the hash of the block with a number; null if there is none, or the node has not seen it yet. */
  blockHash(number: bigint): Promise<Hex | null>;
  /** Returns the time of the block with a number, in unix seconds. */
  blockTime(number: bigint): Promise<bigint>;
  /** Returns the number of an account's mined transactions, which is its next free txNonce. */
  transactionCount(account: Address): Promise<number>;
  /**
   * Returns the same, plus those that wait in the node's pool without a gap before them. Nodes differ in what they
   * count, and a node that takes over may know of none: use it to find gaps, never to choose a txNonce.
   */
  pendingTransactionCount(account: Address): Promise<number>;
  /** Returns an account's native balance, in wei. */
  nativeBalance(account: Address): Promise<bigint>;
  /** Returns the native balances of several accounts, and the cost of a settlement with this much gas and calldata. */
  gasMoney(accounts: readonly Address[], usual: { gas: bigint; bytes: number }): Promise<GasMoney>;
  /**
   * Returns the tip per gas that the node suggests, in wei: at least the network's usual one, at most its
   * `maxFeePerGas`. The usual one if the node does not say.
   */
  suggestedTip(): Promise<bigint>;
  /**
   * Returns the highest fees that an honest payer may have signed for, in wei per gas: the highest base fee of the
   * last 20 blocks, and the higher of the tip suggested now and the highest median tip of these blocks.
   */
  highestFees(): Promise<{ baseFeePerGas: bigint; tip: bigint }>;
  /**
   * Sends raw transactions in the given order, in as few requests as possible. Never throws for a single refused
   * transaction and never classifies one: {@link receipts} and {@link transactionCount} show what became of it.
   * `everywhere` sends them to all healthy endpoints, for transactions that were sent before but not mined. Pass
   * `hashes` if they are known: computing them for observers takes a millisecond for a full batch.
   */
  broadcast(
    rawTransactions: readonly Hex[],
    options?: { everywhere?: boolean; hashes?: readonly Hex[] },
  ): Promise<void>;
  /** Returns true if any endpoint that answers knows one of the transactions, in a block or in its pool. */
  knows(hashes: readonly Hex[]): Promise<boolean>;
  /**
   * Reads receipts by hash, in the given order; null if there is none yet, or none that can be believed. `attempt`
   * counts how often they proved nothing before: from the first time on, other endpoints are asked first.
   */
  readonly receipts: ReceiptReader;
  /**
   * Returns the chain as seen by each of its RPC endpoints; calls to such a view are answered by that endpoint or not
   * at all. There is one for each configured endpoint, even if it fails or serves another chain. The currently
   * preferred ones come first.
   */
  endpoints(): readonly ChainView[];
  /** Ends running calls with an {@link UndeterminedError}, and stops all background work. */
  close(): void;
};

/** The reads that a chain, and each of its RPC endpoints, supports. */
export type ChainQueries = Pick<
  Chain,
  | "network"
  | "operator"
  | "reader"
  | "readLogs"
  | "head"
  | "blockHash"
  | "blockTime"
  | "transactionCount"
  | "receipts"
>;

/** A chain as one RPC endpoint sees it. */
export type ChainView = ChainQueries & {
  /** The endpoint's label: its position in the configuration, counted from 1. */
  readonly endpoint: string;
};

/**
 * How many RPC endpoints must agree, if that many are configured, before a payment is called failed or sent again,
 * before a direct submission is forwarded, and before a payer whose authorization seems unused signs another.
 */
export const failureEndpoints = 2;

/**
 * Asks the endpoints of a chain one by one until the caller stops. Endpoints that do not answer are skipped.
 *
 * @param except the label of an endpoint to skip, because it has answered already
 * @throws UndeterminedError when no endpoint has answered, not even `except`
 */
export async function* eachEndpoint<T>(
  chain: Pick<Chain, "endpoints">,
  ask: (view: ChainView) => Promise<T>,
  except?: string,
): AsyncGenerator<T, void> {
  let failure: UndeterminedError | undefined;
  let hasAnswered = false;
  for (const view of chain.endpoints()) {
    if (view.endpoint === except) continue;
    let answer: T;
    try {
      answer = await ask(view);
    } catch (error) {
      if (!(error instanceof UndeterminedError)) throw error;
      failure = error;
      continue;
    }
    hasAnswered = true;
    yield answer;
  }
  if (!hasAnswered && except === undefined && failure !== undefined) throw failure;
}

/**
 * Returns the number of an account's mined transactions for use in stored data: the lower count of two endpoints, if
 * there are as many. With a number that is too high, the account would sign what can never be mined; one that is too
 * low is corrected by reading again.
 *
 * @throws UndeterminedError when no endpoint answers
 */
export async function leastTransactionCount(
  chain: Pick<Chain, "endpoints">,
  account: Address,
): Promise<number> {
  const counts: number[] = [];
  for await (const count of eachEndpoint(chain, (view) => view.transactionCount(account))) {
    if (counts.push(count) === failureEndpoints) break;
  }
  return Math.min(...counts);
}
