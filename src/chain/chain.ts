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

/** The call of a transaction and its gas limit. */
export type Transaction = { to: Address; data: Hex; gas: bigint };

/** The most that a payer can pay of an asset, in its smallest unit: known already, or what a view gives. */
export type Bound = bigint | ViewCall;

/** The money that a settling transaction depends on. */
export type Funds = {
  /** The payer's spendable amount of the asset, in its smallest unit: the balance, or less where something else bounds it. */
  payer: bigint;
  /** The operator's gas money, in wei. */
  operator: bigint;
  /** See {@link Chain.suggestedTip}. */
  tip: bigint;
};

/** The gas money of some accounts, and what it buys. */
export type GasMoney = {
  /** In wei, in the order in which the accounts were given. */
  balances: readonly bigint[];
  /** The present cost of settling one payment, in wei. */
  settleCost: bigint;
};

/**
 * The expected effect of a transaction that may change nothing without being reverted: a read before it, the call itself (see
 * `ViewCall.changes`), and a read after it.
 */
export type Effect = {
  views: readonly ViewCall[];
  /** Returns true if it is there, by what came of these. */
  isThere(results: readonly ViewResult[]): boolean;
};

/** The simulated result of `settle`, with the block it was simulated on. */
export type Simulation = {
  /** Its `number` is never above that of the block that the payer's balance was read at. */
  head: Head;
  /** The funds to settle with; read only on request. */
  funds: Funds | undefined;
  /**
   * The hash of the code at the payer's address, which the token asks about the signature; null where there is none.
   * Accounts with the same delegate (EIP-7702) have the same. Undefined when it was not asked for.
   */
  payerCode: Hex | null | undefined;
  /** Why it would revert, or that it would not have its effect; undefined when it would succeed. */
  revert: Revert | undefined;
  /**
   * Set if the transaction before this one cannot be run first: it would revert itself (`Revert`), or the node cannot simulate
   * several, and a revert is then unknown.
   */
  before?: Revert | "unknown" | undefined;
};

/**
 * One network's chain. Every method costs one HTTP request (less where concurrent calls share a JSON-RPC batch, more
 * where one call has more to ask than fits in a batch) and throws {@link UndeterminedError} when the chain could not
 * be asked; a revert is an answer.
 */
export type Chain = {
  readonly network: NetworkConfig;
  /** Simulations run as from this account: only operators may settle. */
  readonly operator: Address;
  /** Asks what is in no other member. */
  readonly reader: ChainReader;
  readonly readLogs: LogReader;
  /**
   * Runs a transaction of the operator by `eth_call`, against the newest block. The payer's code is always read with the
   * funds, and without them if it is asked for. Of what reverts there are no funds: the asset may be no token.
   */
  simulate(
    transaction: Transaction,
    options: {
      /** Whose payment it settles, and in what. */
      payer: Address;
      asset: Address;
      withFunds: boolean;
      /** A bound on the payer's funds besides the balance. */
      bounds?: readonly Bound[] | undefined;
      withPayerCode?: boolean;
      /** Looked for instead of a revert, where there is one. */
      effect?: Effect | undefined;
      /** A call that runs before it, as from another account. */
      before?: (Transaction & { from: Address }) | undefined;
      /** The settlement's id, for observers. */
      id?: Hex | undefined;
    },
  ): Promise<Simulation>;
  /** Why a transaction of an account would revert now; undefined when it would succeed. */
  simulateFrom(account: Address, transaction: Transaction, id?: Hex): Promise<Revert | undefined>;
  /**
   * Asks the payer's code about a signature (EIP-1271), as the token would. `id` is that of the settlement.
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
  /** The hash of the block with a number; null when the chain has none, or the node has not seen it yet. */
  blockHash(number: bigint): Promise<Hex | null>;
  /** The time of the block with a number, unix seconds. */
  blockTime(number: bigint): Promise<bigint>;
  /** The number of transactions of an account that are mined, which is its next free txNonce. */
  transactionCount(account: Address): Promise<number>;
  /**
   * The same with those that wait in the node's pool without a gap before them. Nodes differ in what they count,
   * and one that stands in for another may not know of any: good for finding gaps, never for choosing a txNonce.
   */
  pendingTransactionCount(account: Address): Promise<number>;
  /** An account's native coins, in wei. */
  nativeBalance(account: Address): Promise<bigint>;
  /** The native coins of several accounts, and what a settlement costs that uses so much gas and calldata. */
  gasMoney(accounts: readonly Address[], usual: { gas: bigint; bytes: number }): Promise<GasMoney>;
  /**
   * The tip per gas, in wei, that the node thinks will do at the moment: never below the network's usual one, never
   * above its `maxFeePerGas`. The usual one where the node does not say.
   */
  suggestedTip(): Promise<bigint>;
  /**
   * The most that an honest payer may have signed its fees by, in wei per gas: the highest base fee of the last 20 blocks, and the
   * tip that the node suggests now or the highest median tip of these blocks.
   */
  highestFees(): Promise<{ baseFeePerGas: bigint; tip: bigint }>;
  /**
   * Sends raw transactions in the given order, in as few requests as they fit in. Never throws for a single refused transaction and
   * never classifies one: what became of it is learnt from {@link receipts} and {@link transactionCount}.
   * `everywhere` sends them to all endpoints that are well: for what was sent before and has not been mined. `hashes` are
   * theirs, where they are known: computing them for the channel takes a millisecond of a full batch.
   */
  broadcast(
    rawTransactions: readonly Hex[],
    options?: { everywhere?: boolean; hashes?: readonly Hex[] },
  ): Promise<void>;
  /** Returns true if any endpoint that answers knows one of the transactions: in a block, or in its pool. */
  knows(hashes: readonly Hex[]): Promise<boolean>;
  /**
   * Receipts by hash, in the given order; null where there is none yet, or none that can be believed. `attempt`
   * counts how often they proved nothing before: from the first time on, other endpoints are asked first.
   */
  readonly receipts: ReceiptReader;
  /**
   * The chain as each of its RPC endpoints shows it: what such a view is asked is answered by that endpoint, or by none.
   * Always one for each that is configured: one that fails, or serves another chain, does not answer. Those come first
   * that are asked first at the moment.
   */
  endpoints(): readonly ChainView[];
  /** Ends what is under way, undetermined, and all that goes on in the background. */
  close(): void;
};

/** The questions to a chain, and to each of its RPC endpoints. */
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
  /** Its label: its place in the configuration, counted from 1. */
  readonly endpoint: string;
};

/**
 * How many RPC endpoints, where there are as many, must say the same before a payment is called failed, or sent again,
 * before what was submitted directly is forwarded, and before a payer whose authorization seems unused signs another.
 */
export const failureEndpoints = 2;

/**
 * Asks the endpoints of a chain, one after the other, until the caller has heard enough. Those that give no answer are
 * passed over: silence counts for nothing.
 *
 * @param except the label of one that is not asked, because it has answered already
 * @throws UndeterminedError when nobody has answered: none of them, and none before
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
 * How many of an account's transactions are mined, for what is kept for good: the lowest word of two endpoints, where there are
 * as many. By a number that is too high the account would sign what can never be mined; one that is too low is asked for again.
 *
 * @throws UndeterminedError when nobody has answered
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
