import type { Bound, Chain, ChainQueries, Effect, Transaction } from "../../chain/chain.ts";
import { gasPerByte } from "../../chain/fees.ts";
import type { EventLog, LogFilter, Receipt } from "../../chain/logs-and-receipts.ts";
import type { Revert } from "../../chain/revert.ts";
import type { AskNode } from "../../chain/rpc/calls.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { BuilderCodes } from "../../protocol/builder-code.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import type { AnswerExtra } from "../../protocol/write-answers.ts";
import type { ChannelRecord, KnownActions, OwnedChannels } from "../actions.ts";
import type { PaymentSigner } from "../payer-terms.ts";

/** A payment to settle, and its recipient. */
export type SettleCall = {
  payment: SignedPayment;
  recipient: Address;
  /** The amount to settle, if it is less than the signature allows. */
  amount?: bigint | undefined;
  /** The seller's price, if it may differ from the signed amount; only set for new payments. */
  price?: bigint;
  /** The settlement's id, so that observers can attribute requests to it. */
  id?: Hex;
  /** The builder codes to append to the transaction's calldata. */
  codes?: BuilderCodes | undefined;
};

/** A transaction that a payer has signed but not sent. Fees are in wei per gas. */
export type PayerTransaction = Transaction & {
  from: Address;
  /** The nonce of the payer's account. */
  nonce: number;
  maxFeePerGas: bigint;
  raw: Hex;
  hash: Hex;
  /** The refusal for a payer whose balance (`has`, in wei) does not cover the cost (`needed`). */
  refuse(has: bigint, needed: bigint): Invalid;
};

/** A contract call; if `sender` is set, only that account may make it. */
export type ContractCall = { to: Address; data: Hex; sender?: Address | undefined };

/** A contract that a method needs on local chains, such as a stand-in for one at the same address on public chains. */
export type LocalContract = {
  readonly address: Address;
  /** Loads its deployed bytecode for a chain with this token. */
  code(token: Asset): Promise<Hex>;
};

/** A payer who approves a contract on a token, and the node to ask for the payer's nonces. */
export type ApprovingPayer = {
  ask: AskNode;
  chainId: number;
  asset: Asset;
  signer: PaymentSigner;
  /** Creates a signer for transactions, which only a private key can sign. */
  keySigner(): { readonly address: Address; signDigest(digest: Hex): Hex };
};

/** The logs in which payers announce a withdrawal from a channel. `endsAt` is in unix seconds. */
export type WithdrawalLogs = {
  readonly filter: LogFilter;
  read(log: EventLog): { channel: Hex; amount: bigint; endsAt: number } | undefined;
};

/** How to settle a payment: the transaction to simulate, and to send if the simulation succeeds. */
export type Plan = {
  /** The payment, without an approval that it does not need. */
  call: SettleCall;
  transaction: Transaction;
  /** The change that the simulation must show; set if the transaction may succeed without settling the payment. */
  effect?: Effect | undefined;
  /** Bounds on the payer's funds besides the balance. */
  bounds?: readonly Bound[];
  /**
   * The payer's own transaction that came with the payment and must be mined before it can settle. Undefined when the
   * payment is planned again after that.
   */
  first?: PayerTransaction | undefined;
  /** True if the payment brings an approval that replaces the payer's existing one. */
  bringsApproval?: boolean;
  /** Somebody else's transaction that has already settled the payment; then nothing is simulated or sent. */
  settledBy?: Payout | undefined;
  /** The `extra` of a successful verify. */
  extra?: AnswerExtra["extra"];
};

/** The response fields for a settled payment besides its transaction; `invalid` is set if it did less than requested. */
export type SettledAnswer = AnswerExtra & {
  amount?: bigint | undefined;
  invalid?: Invalid | undefined;
};

/** The gas of a transaction with one payment. */
export type Usage = {
  gas: bigint;
  /** The most gas that it may use; an operator must be able to pay for that to send it. */
  gasLimit: bigint;
  /** The size of its calldata. */
  bytes: number;
};

/** The usage of a transaction that uses `gas`, and at most `most` plus the gas for its calldata. */
export function usageOf(gas: bigint, { most, bytes }: { most: bigint; bytes: number }): Usage {
  return { gas, gasLimit: most + BigInt(bytes) * gasPerByte, bytes };
}

/** The settled amount of a payment, in the asset's smallest unit. */
export function amountOf({ payment, amount }: Pick<SettleCall, "payment" | "amount">): bigint {
  return amount ?? payment.limit;
}

/** The limits of one transaction. `cost` is its gas limit times its fee per gas, in wei. */
export type BatchLimits = { maxPayments: number; maxFeePerGas: bigint; maxCost: bigint };

/** How a mined transaction ended a settlement. `failure` is the reason, in a few words. */
export type SettlementProof = { settled: true } | { settled: false; failure: string };

/** The settlements that a receipt proves. */
export type SettlementProofs = {
  /** How this settlement ended; undefined if the receipt proves neither success nor failure. */
  find(call: SettleCall): SettlementProof | undefined;
};

/** The state of a payment on chain. */
export type PaymentState = {
  /** True if used or canceled: a token does not distinguish the two. */
  used: boolean;
  /** Why its value could not be paid out now if others have submitted it; undefined if it could. */
  obstacle?: string | undefined;
};

/** A payment, and the range of blocks to search, both ends inclusive. */
export type Search = SettleCall & { fromBlock: bigint; toBlock: bigint };

/** The token's `Transfer` log that brought value to the facilitator contract. It proves one payment only. */
export type TransferPlace = {
  transactionHash: Hex;
  logIndex: number;
  blockNumber: bigint;
  blockHash: Hex;
};

/** A transaction that paid a recipient, by settling the payment or by forwarding it after a direct submission. */
export type Payout = { kind: "settled" | "forwarded"; hash: Hex; blockNumber: bigint; blockHash: Hex };

/** How an authorization was used or canceled, according to its token's logs. */
export type PaymentUse = {
  readonly kind: "used" | "cancelled";
  readonly transaction: string;
  readonly blockNumber: bigint;
  /** The block's time, in unix seconds. */
  readonly timestamp: bigint;
  /** The sender and the target of the transaction; null if the node does not return them. */
  readonly sender: string | null;
  readonly to: string | null;
  /** The transfer that it made; undefined if it was canceled. */
  readonly moved: { readonly to: string; readonly value: bigint } | undefined;
};

/** A forward limit in the asset's smallest unit. `available` can be forwarded now; it refills to `limit` within 24 hours. */
export type ForwardLimit = { limit: bigint; available: bigint };

/**
 * How one payment method moves money: its on-chain part. Methods that query the chain throw UndeterminedError if the chain
 * cannot be reached.
 */
export type Settling = {
  /** The `SignedPayment.method` of the payments that it settles. */
  readonly method: string;

  /**
   * Plans how to settle a payment, or returns the refusal if the chain's state rules it out. Call this first for every new
   * payment.
   *
   * @param isUnderWay returns true if the payer's transaction, or the gas money for it, has been sent: a payer gets gas money
   * only once, so the transaction's fees are then not judged again. Only called if they would be refused
   */
  plan(chain: Chain, call: SettleCall, isUnderWay?: () => Promise<boolean>): Plan | Promise<Plan | Invalid>;
  /** Verifies a payment that is never settled on its own, such as a voucher; used instead of `plan`. */
  judge?(chain: Chain, call: SettleCall): Promise<Invalid | AnswerExtra>;
  /**
   * Identifies a request that a shop can repeat, such as a claim: gives it the nonce and window of the open request for the
   * same thing, or new ones. `known` holds the organization's earlier requests; `chain` is undefined if the network is not
   * served.
   */
  identify?(chain: Chain | undefined, payment: SignedPayment, known: KnownActions): Promise<SignedPayment>;
  /** Set for a method with payment channels. */
  readonly channels?: OnChannels;
  /**
   * Returns the response fields for a settled payment, if there are any besides its transaction.
   *
   * @param proven the transaction that settled it, and its block
   */
  describeSettled?(
    chain: Chain,
    call: SettleCall,
    proven: Pick<Payout, "hash" | "blockNumber">,
  ): Promise<SettledAnswer>;
  /**
   * Why {@link Plan.first} would fail, given its revert, or "unknown" if the node cannot simulate what follows it: then
   * only the chain's state can refuse the payment. Undefined if nothing speaks against the payment.
   */
  explainFirst?(chain: Chain, call: SettleCall, outcome: Revert | "unknown"): Promise<Invalid | undefined>;
  /** The transaction that settles one or more payments; all must have the same {@link batchKey}. */
  transaction(calls: readonly SettleCall[], network: NetworkConfig): Transaction;
  /** Payments with the same key may share a transaction. */
  batchKey(call: SettleCall, network: Pick<NetworkConfig, "facilitatorContract">): string;
  /**
   * How many of the given payments (all with the same key), counted from the first, fit in one transaction; 0 if the first
   * one alone costs too much.
   */
  count(calls: readonly SettleCall[], network: NetworkConfig, limits: BatchLimits): number;
  /** Returns true if such a transaction settles several payments: a revert then says nothing about any single one. */
  settlesSeveral(data: Hex): boolean;
  /** The gas usage of a plain payment that is settled alone to a recipient without a balance. */
  readonly usual: Usage;
  /** The gas of a payment, if it depends on the payment's size. Default: that of `usual`. */
  gasOf?(call: SettleCall): bigint;

  /**
   * Reads which settlements the receipt of such a transaction proves. Missing logs prove nothing.
   *
   * @param data the calldata, if we sent the transaction; undefined if somebody else may have composed it
   */
  prove(receipt: Receipt, network: Pick<NetworkConfig, "facilitatorContract">, data?: Hex): SettlementProofs;
  /**
   * Finds the transaction that paid a payment to its recipient, as proven by the logs of its receipt; null if these blocks
   * hold none. It is ours, or anyone's if the payment pays its recipient directly.
   */
  findPayout(chain: ChainQueries, search: Search): Promise<Payout | null>;

  /** Reads the state of a payment. Used only after a failure. */
  stateOf(chain: ChainQueries, call: SettleCall): Promise<PaymentState>;
  /**
   * Why a correctly signed payment would not settle, after its simulation reverted.
   *
   * @throws UndeterminedError if the fault is ours, OperatorError if it is the operator's
   */
  explain(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid>;
  /**
   * Returns true if a payment was used or canceled. Concurrent calls share a request to the node, because refused payments
   * trigger them and cost their senders nothing.
   */
  isUsed(
    chain: Pick<ChainQueries, "reader">,
    payment: Pick<SignedPayment, "asset" | "payer" | "nonce">,
    id?: Hex,
  ): Promise<boolean>;

  /** The contracts that it needs on local chains, apart from the facilitator contract. */
  readonly localContracts?: readonly LocalContract[];
  /** The address that gets the payer's tokens, if it is not the signed payee. */
  receiver?(recipient: Address): Address;
  /** The call that submits a payment without the facilitator. */
  submission(payment: SignedPayment): Promise<ContractCall>;
  /** The call that a payer makes to cancel a payment. */
  cancellation(
    payment: SignedPayment,
    payer: { privateKey: Hex; asset: Asset; chainId: number },
  ): Promise<ContractCall>;

  /** Creates the extension with the approval that a payment needs: a token permit, or a transaction that the payer signs. */
  bringApproval?(kind: true | "transaction", payment: SignedPayment, payer: ApprovingPayer): Promise<object>;

  /** Forwards payments that others have submitted; undefined if only we can submit one. */
  readonly recovery?: Recovery;
};

/** The part of a method that handles channels. */
export type OnChannels = {
  /** The channels that a payment concerns; one organization may own them. */
  ownedBy(payment: SignedPayment, network: NetworkConfig): OwnedChannels;
  /** The effect of a payment on channels, for the ledger. Default: none. */
  recordOf?(call: SettleCall, network: NetworkConfig): ChannelRecord;
  /** How payers announce withdrawals from the channels that its payments open. */
  readonly withdrawals?: WithdrawalLogs;
};

/** Pays out the value of a payment that somebody else has submitted to the facilitator contract. */
export type Recovery = {
  /** The transaction that pays it out. */
  transaction(call: SettleCall, network: NetworkConfig): Transaction;
  /** The gas usage for a plain payment. */
  readonly usual: Usage;
  /** Returns true if a receipt proves that it was paid out. */
  proves(receipt: Receipt, network: NetworkConfig, call: SettleCall): boolean;
  /** How much of an asset may be paid out. */
  limit(chain: Chain, asset: Address): Promise<ForwardLimit>;
  /**
   * Finds the transfer to the facilitator contract of a payment that others have submitted, proven by the logs of one
   * successful transaction.
   *
   * Returns "cancelled" if the payer canceled it instead; null if it was not used by `toBlock`, was settled, or brought its
   * value elsewhere. Makes one request for about 2,000 blocks, or for as many as the provider allows. The result is final
   * only if the blocks are deep enough.
   *
   * @throws UndeterminedError also if it is used by `toBlock` but no log since `fromBlock` says how.
   */
  findDirectSubmission(chain: ChainQueries, search: Search): Promise<TransferPlace | "cancelled" | null>;
};
