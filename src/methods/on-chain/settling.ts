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

/** One payment as it is settled, and to whom it goes. */
export type SettleCall = {
  payment: SignedPayment;
  recipient: Address;
  /** The amount to settle, if it is less than the signature allows. */
  amount?: bigint | undefined;
  /** The amount that the seller asks for, where it may be another than the signed one; known of new payments alone. */
  price?: bigint;
  /** The settlement's id, for observers of what is asked about it. */
  id?: Hex;
  /** The codes behind the calldata of its transaction. */
  codes?: BuilderCodes | undefined;
};

/** A transaction that a payer has signed and not sent. Fees are in wei per gas. */
export type PayerTransaction = Transaction & {
  from: Address;
  /** The payer's own count of transactions. */
  nonce: number;
  maxFeePerGas: bigint;
  raw: Hex;
  hash: Hex;
  /** Why the payment is refused whose payer cannot pay for it: has so much, and it may cost so much, in wei. */
  refuse(has: bigint, needed: bigint): Invalid;
};

/** A call of a contract; `sender` is the only account that may make it, where there is one. */
export type ContractCall = { to: Address; data: Hex; sender?: Address | undefined };

/** A contract that a method needs on local chains, such as one that public chains have at the same address. */
export type LocalContract = {
  readonly address: Address;
  /** Loads its code as it stands on a chain with this token. */
  code(token: Asset): Promise<Hex>;
};

/** A payer who approves a contract on a token, and the node that knows the payer's nonces. */
export type ApprovingPayer = {
  ask: AskNode;
  chainId: number;
  asset: Asset;
  signer: PaymentSigner;
  /** Makes a signer of transactions, which are signed by a key alone. */
  keySigner(): { readonly address: Address; signDigest(digest: Hex): Hex };
};

/** The logs by which payers announce that they withdraw from a channel. `endsAt` in unix seconds. */
export type WithdrawalLogs = {
  readonly filter: LogFilter;
  read(log: EventLog): { channel: Hex; amount: bigint; endsAt: number } | undefined;
};

/** How one payment is settled: what is simulated, and sent if nothing stands against it. */
export type Plan = {
  /** The payment, without an approval that is not used. */
  call: SettleCall;
  transaction: Transaction;
  /**
   * The change that the transaction must make, where it may be mined without a revert and not have settled the payment: its simulation then
   * looks for that.
   */
  effect?: Effect | undefined;
  /** The bounds of a payer's means, besides the balance. */
  bounds?: readonly Bound[];
  /**
   * A transaction of the payer's own that came with the payment, and has to be mined before it can settle. Planned again after
   * that, it has none.
   */
  first?: PayerTransaction | undefined;
  /** True if the payment brings an approval, in the place of the one that was there before. */
  bringsApproval?: boolean;
  /** The transaction of somebody else that has settled the payment already: nothing is simulated then, nor sent. */
  settledBy?: Payout | undefined;
  /** `extra` of a good verify. */
  extra?: AnswerExtra["extra"];
};

/** The members of the answer about a settled payment besides its transaction; `invalid` where that did less than was asked for. */
export type SettledAnswer = AnswerExtra & {
  amount?: bigint | undefined;
  invalid?: Invalid | undefined;
};

/** The gas of a transaction with one payment. */
export type Usage = {
  gas: bigint;
  /** The most that it may use: an operator must have that at hand to send it. */
  gasLimit: bigint;
  /** Of calldata. */
  bytes: number;
};

/** The usage of a transaction that uses `gas`, and may use up to `most` besides its calldata. */
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

/** Which settlements a receipt proves. */
export type SettlementProofs = {
  /** How it ended this one; undefined when the receipt proves neither success nor failure. */
  find(call: SettleCall): SettlementProof | undefined;
};

/** How a payment stands on chain. */
export type PaymentState = {
  /** Used or cancelled: a token does not tell these two apart. */
  used: boolean;
  /** Why its value could not be paid out now, once others have submitted it; undefined when nothing stands against that. */
  obstacle?: string | undefined;
};

/** A payment, and the blocks to look for what became of it in, both ends included. */
export type Search = SettleCall & { fromBlock: bigint; toBlock: bigint };

/** Where value came into the facilitator contract: the token's `Transfer`, which proves one payment only. */
export type TransferPlace = {
  transactionHash: Hex;
  logIndex: number;
  blockNumber: bigint;
  blockHash: Hex;
};

/** A transaction that paid a recipient: settled it, or forwarded after a direct submission. */
export type Payout = { kind: "settled" | "forwarded"; hash: Hex; blockNumber: bigint; blockHash: Hex };

/** How an authorization came to be used, or cancelled, as the logs of its token say. */
export type PaymentUse = {
  readonly kind: "used" | "cancelled";
  readonly transaction: string;
  readonly blockNumber: bigint;
  /** The time of its block, unix seconds. */
  readonly timestamp: bigint;
  /** Who sent the transaction, and to which contract; null where the node does not say. */
  readonly sender: string | null;
  readonly to: string | null;
  /** Where the value went, and how much; undefined where it was cancelled. */
  readonly moved: { readonly to: string; readonly value: bigint } | undefined;
};

/** In the asset's smallest unit. `available` may be forwarded now; it grows back to `limit` within 24 hours. */
export type ForwardLimit = { limit: bigint; available: bigint };

/**
 * How one payment method moves money: the half of it that needs a chain. What asks a chain throws UndeterminedError when the
 * chain could not be asked.
 */
export type Settling = {
  /** `SignedPayment.method` of the payments that it settles. */
  readonly method: string;

  /**
   * Plans how a new payment is settled, or returns the refusal if the chain's state rules it out. Call this first for every new
   * payment.
   *
   * @param isUnderWay whether the payer's transaction, or the coins that it lacks, were sent: what it offers for its gas is not
   * judged anew then, since a payer gets those coins once. Asked where that would be refused
   */
  plan(chain: Chain, call: SettleCall, isUnderWay?: () => Promise<boolean>): Plan | Promise<Plan | Invalid>;
  /** Verifies a payment that is not settled by itself, such as a voucher; `plan` is not asked for it then. */
  judge?(chain: Chain, call: SettleCall): Promise<Invalid | AnswerExtra>;
  /**
   * Names what a shop can ask for again and again, such as a claim: gives it the nonce and window of the request for the same that is
   * open, or of a new one. `known` is what the organization has asked for before; `chain` is undefined where its network is not served.
   */
  identify?(chain: Chain | undefined, payment: SignedPayment, known: KnownActions): Promise<SignedPayment>;
  /** Of a method whose payments are about channels. */
  readonly channels?: OnChannels;
  /**
   * Reads what the answer about a settled payment says, where that is more than its transaction.
   *
   * @param proven by which transaction it was settled, and in which block
   */
  describeSettled?(
    chain: Chain,
    call: SettleCall,
    proven: Pick<Payout, "hash" | "blockNumber">,
  ): Promise<SettledAnswer>;
  /**
   * Why {@link Plan.first} would not work out: it would revert, or the node cannot simulate what comes after it, and state stands
   * against the payment; undefined where nothing is known against it.
   */
  explainFirst?(chain: Chain, call: SettleCall, outcome: Revert | "unknown"): Promise<Invalid | undefined>;
  /** The transaction that settles payments, one at least; several have the same {@link batchKey}. */
  transaction(calls: readonly SettleCall[], network: NetworkConfig): Transaction;
  /** Payments with the same key may share a transaction. */
  batchKey(call: SettleCall, network: Pick<NetworkConfig, "facilitatorContract">): string;
  /**
   * How many of the given payments, which have the same key, from the first on, fit in one transaction; 0 where the first
   * alone costs too much.
   */
  count(calls: readonly SettleCall[], network: NetworkConfig, limits: BatchLimits): number;
  /** Returns true if such a transaction settles several payments, so that a revert says nothing about one of them. */
  settlesSeveral(data: Hex): boolean;
  /** The usage of a plain payment that is settled alone, for a recipient without a balance. */
  readonly usual: Usage;
  /** The gas of one whose size decides it; that of `usual` by default. */
  gasOf?(call: SettleCall): bigint;

  /**
   * Which settlements the receipt of such a transaction proves. Silence is no proof.
   *
   * @param data the calldata, if we sent the transaction; undefined for one that somebody else may have put together
   */
  prove(receipt: Receipt, network: Pick<NetworkConfig, "facilitatorContract">, data?: Hex): SettlementProofs;
  /**
   * The transaction that paid a payment to its recipient, as proven by the logs of its receipt; null when none of these
   * blocks holds one. It is ours, or that of anybody who can submit a payment which pays its recipient by itself.
   */
  findPayout(chain: ChainQueries, search: Search): Promise<Payout | null>;

  /** Reads how a payment stands. Only on failing paths. */
  stateOf(chain: ChainQueries, call: SettleCall): Promise<PaymentState>;
  /**
   * Why a correctly signed payment would not settle, after its simulation reverted.
   *
   * @throws UndeterminedError when the fault is ours, OperatorError when it is the operator's
   */
  explain(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid>;
  /**
   * Returns true if a payment was used or cancelled. Many that are asked about at a time share a request, since refusals ask it,
   * which cost their senders nothing.
   */
  isUsed(
    chain: Pick<ChainQueries, "reader">,
    payment: Pick<SignedPayment, "asset" | "payer" | "nonce">,
    id?: Hex,
  ): Promise<boolean>;

  /** The contracts that local chains need for it, apart from the facilitator contract. */
  readonly localContracts?: readonly LocalContract[];
  /** Where a payer's tokens go, if that is not where the payment was signed to. */
  receiver?(recipient: Address): Address;
  /** The call by which somebody submits a payment without the facilitator. */
  submission(payment: SignedPayment): Promise<ContractCall>;
  /** The call by which a payer makes a payment of its own invalid. */
  cancellation(
    payment: SignedPayment,
    payer: { privateKey: Hex; asset: Asset; chainId: number },
  ): Promise<ContractCall>;

  /**
   * Makes the extension by which a payment brings the approval that it needs: one that is signed for the token, or a transaction
   * of the payer's.
   */
  bringApproval?(kind: true | "transaction", payment: SignedPayment, payer: ApprovingPayer): Promise<object>;

  /** Forwards payments that others have submitted; undefined if only we can submit one. */
  readonly recovery?: Recovery;
};

/** The half of a method that is about channels. */
export type OnChannels = {
  /** The channels that a payment is about, which may be those of one organization. */
  ownedBy(payment: SignedPayment, network: NetworkConfig): OwnedChannels;
  /** The effect of a payment on channels, for the ledger; none by default. */
  recordOf?(call: SettleCall, network: NetworkConfig): ChannelRecord;
  /** How payers announce withdrawals from the channels that its payments open. */
  readonly withdrawals?: WithdrawalLogs;
};

/** Pays out what a payment brought to the facilitator contract because somebody else has submitted it. */
export type Recovery = {
  /** The transaction that pays it out. */
  transaction(call: SettleCall, network: NetworkConfig): Transaction;
  /** The gas for a plain payment. */
  readonly usual: Usage;
  /** Returns true if a receipt proves that it was paid out. */
  proves(receipt: Receipt, network: NetworkConfig, call: SettleCall): boolean;
  /** How much of an asset may be paid out. */
  limit(chain: Chain, asset: Address): Promise<ForwardLimit>;
  /**
   * Where a payment that was submitted by others brought its value to the facilitator contract, proven by the logs of one
   * successful transaction.
   *
   * "cancelled" when the payer cancelled it instead; null when it was not used by `toBlock`, was settled, or brought its
   * value elsewhere. Requests grow with the range: some 2,000 blocks each, or what the provider allows. Only blocks that
   * are deep enough prove anything for good.
   *
   * @throws UndeterminedError also when it is used by `toBlock` and no log since `fromBlock` says how.
   */
  findDirectSubmission(chain: ChainQueries, search: Search): Promise<TransferPlace | "cancelled" | null>;
};
