import type { NetworkConfig } from "../config/network-config.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { ReceivedPayment, SettleCall } from "./contract/calls.ts";
import type { Revert } from "./contract/revert.ts";
import type { EventLog } from "./log.ts";
import type { Head } from "./rpc/calls.ts";
import type { RpcStatus } from "./rpc/rpc-status.ts";
import type { AskedAuthorization } from "./used-authorizations.ts";

/** The money that a settling transaction depends on. */
export type Funds = {
  /** The payer's balance of the asset, in its smallest unit. */
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
  /** What settling one payment costs at the moment, in wei. */
  settleCost: bigint;
};

/** What `settle` would do now, and when "now" is. */
export type Simulation = {
  /** Its `number` is never above that of the block that the payer's balance was read at. */
  head: Head;
  /** What is there to settle with; read only when asked for. */
  funds: Funds | undefined;
  /**
   * The hash of the code at the payer's address, which the token asks about the signature; null where there is none.
   * Accounts with the same delegate (EIP-7702) have the same. Undefined when it was not asked for.
   */
  payerCode: Hex | null | undefined;
  /** Why it would revert; undefined when it would succeed. */
  revert: Revert | undefined;
};

/** What the code at a payer's address, if any, says of a signature (EIP-1271). */
export type WalletProof = "no_code" | "accepted" | "refused";

/** In the asset's smallest unit. `available` may be forwarded now; it grows back to `limit` within 24 hours. */
export type ForwardLimit = { limit: bigint; available: bigint };

/** The state that can keep a correctly signed payment from settling. */
export type Diagnosis = {
  /** Used or cancelled: the token does not tell these two apart. */
  authorizationUsed: boolean;
  balance: bigint;
  payerBlacklisted: boolean;
  recipientBlacklisted: boolean;
  contractBlacklisted: boolean;
  tokenPaused: boolean;
  contractPaused: boolean;
  operatorAuthorized: boolean;
};

/** A mined transaction, with what is needed to prove that it settled something. */
export type Receipt = {
  hash: Hex;
  succeeded: boolean;
  blockNumber: bigint;
  blockHash: Hex;
  logs: readonly EventLog[];
  /** What its sender has paid, in wei; undefined where the node does not say. */
  gasCost: bigint | undefined;
};

/** The same, with the label of the RPC endpoint that gave it: whose word it is. */
export type EndpointReceipt = Receipt & { readonly endpoint: string };

/** An authorization, and the blocks to look for it in, both ends included. */
export type DirectSubmissionQuery = Omit<ReceivedPayment, "recipient"> & {
  fromBlock: bigint;
  toBlock: bigint;
};

/** Where value came into the facilitator contract: the token's `Transfer`, which proves one authorization only. */
export type TransferPlace = {
  transactionHash: Hex;
  logIndex: number;
  blockNumber: bigint;
  blockHash: Hex;
};

/** A transaction that paid a recipient: settled as a whole, or forwarded after a direct submission. */
export type Payout = { kind: "settled" | "forwarded"; hash: Hex; blockNumber: bigint; blockHash: Hex };

/** Value that reached the facilitator contract outside of a settlement and was not paid out by a recovery. */
export type StrandedTransfer = TransferPlace & {
  /** The payer, or the sender of tokens that came without an authorization. */
  from: Address;
  value: bigint;
  /** Of the authorization that brought it; undefined when none did. */
  authorizationNonce: Hex | undefined;
};

/**
 * One network's chain. Every method costs one HTTP request (less where concurrent calls share a JSON-RPC batch, more
 * where one call has more to ask than fits in a batch) and throws {@link UndeterminedError} when the chain could not
 * be asked; a revert is an answer.
 */
export type Chain = {
  readonly network: NetworkConfig;
  /**
   * Runs the real `settle` by `eth_call` from the operator, against the newest block. The payer's code is always read with
   * the funds, and without them if it is asked for.
   */
  simulateSettle(
    call: SettleCall,
    options: { withFunds: boolean; withPayerCode?: boolean },
  ): Promise<Simulation>;
  /** Why `forwardReceived`, sent by an account, would revert now; undefined when it would succeed. */
  simulateForward(call: SettleCall, from: Address): Promise<Revert | undefined>;
  /** How much of an asset the facilitator contract forwards. */
  forwardLimit(asset: Address): Promise<ForwardLimit>;
  /** Asks the payer's code for its word on a signature (EIP-1271), as the token would. `id` is that of the settlement. */
  askWallet(payer: Address, digest: Hex, signature: Hex, id?: Hex): Promise<WalletProof>;
  /** Reads whatever may explain a failed simulation. Only on the failing path. */
  diagnose(call: SettleCall): Promise<Diagnosis>;
  /**
   * Whether an authorization was used or cancelled: the token does not tell the two apart. Many that are asked about at a time
   * share a request.
   */
  isAuthorizationUsed(asked: AskedAuthorization): Promise<boolean>;
  head(): Promise<Head>;
  /** The hash of the block with a number; null when the chain has none, or the node has not seen it yet. */
  blockHash(number: bigint): Promise<Hex | null>;
  /** The number of transactions of an account that are mined, which is its next free txNonce. */
  transactionCount(account: Address): Promise<number>;
  /**
   * The same with those that wait in the node's pool without a gap before them. Nodes differ in what they count,
   * and one that stands in for another may not know of any: good for finding gaps, never for choosing a txNonce.
   */
  pendingTransactionCount(account: Address): Promise<number>;
  /** An account's native coins, in wei. */
  nativeBalance(account: Address): Promise<bigint>;
  /** The native coins of several accounts, and what a settlement costs. */
  gasMoney(accounts: readonly Address[]): Promise<GasMoney>;
  /**
   * The tip per gas, in wei, that the node thinks will do at the moment: never below the network's usual one, never
   * above its `maxFeePerGas`. The usual one where the node does not say.
   */
  suggestedTip(): Promise<bigint>;
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
  /** Whether any endpoint that answers knows one of the transactions: in a block, or in its pool. */
  knows(hashes: readonly Hex[]): Promise<boolean>;
  /**
   * Receipts by hash, in the given order; null where there is none yet, or none that can be believed. `attempt`
   * counts how often they proved nothing before: from the first time on, other endpoints are asked first.
   */
  receipts(
    hashes: readonly Hex[],
    options?: { attempt?: number },
  ): Promise<readonly (EndpointReceipt | null)[]>;
  /**
   * Where an authorization that was submitted straight to the token brought its value to the facilitator
   * contract. Proven by the logs of one successful transaction: `AuthorizationUsed` of that very authorization, the
   * `Transfer` of that very value right after it, both of the token, and no `Settled` for it.
   *
   * "cancelled" when the payer cancelled it instead; null when it was not used by `toBlock`, was settled, or brought
   * its value elsewhere. Requests grow with the range: some 2,000 blocks each, or what the provider allows. Only
   * blocks that are deep enough prove anything for good.
   *
   * @throws UndeterminedError also when the authorization is used by `toBlock` and no log since `fromBlock` says how.
   */
  findDirectSubmission(query: DirectSubmissionQuery): Promise<TransferPlace | "cancelled" | null>;
  /**
   * The transaction that paid a payment to its recipient, by `settle` or by `forwardReceived`, as proven by the logs of
   * its receipt; null when none of these blocks holds one.
   *
   * @throws UndeterminedError when a log and its receipt do not fit together.
   */
  findPayout(query: DirectSubmissionQuery & { recipient: Address }): Promise<Payout | null>;
  /**
   * Every transfer of an asset to the facilitator contract in the given blocks, both ends included, that is neither
   * part of a settlement nor paid out by a recovery within these blocks, lowest block first. What a rescue took out
   * is still listed: tokens do not say which of them are moved.
   */
  strandedTransfers(asset: Address, fromBlock: bigint, toBlock: bigint): Promise<readonly StrandedTransfer[]>;
  /**
   * The chain as each of its RPC endpoints shows it: what such a view is asked is answered by that endpoint, or by none.
   * Always one for each that is configured: one that fails, or serves another chain, does not answer. Those come first
   * that are asked first at the moment.
   */
  endpoints(): readonly ChainView[];
  /** How the RPC endpoints are, without asking them. Names no URL. */
  status(): RpcStatus;
  /**
   * How they are now: asks each of them for its chain id and its newest block. Never throws. A network's only
   * endpoint is not checked for its chain: compare its `chainId`.
   */
  probe(): Promise<RpcStatus>;
  /** Ends what is under way, undetermined, and all that goes on in the background. */
  close(): void;
};

/** What one RPC endpoint alone says of a chain. */
export type ChainView = Pick<
  Chain,
  | "network"
  | "head"
  | "blockHash"
  | "transactionCount"
  | "diagnose"
  | "isAuthorizationUsed"
  | "receipts"
  | "findDirectSubmission"
  | "findPayout"
> & {
  /** Its label: its place in the configuration, counted from 1. */
  readonly endpoint: string;
};
