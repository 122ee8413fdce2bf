import type { ChannelRecord } from "../methods/actions.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { finalitySeconds } from "../protocol/refusals.ts";
import type { settlementStates } from "../protocol/settlement-query.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";

/**
 * | State | Meaning | Authority |
 * |---|---|---|
 * | submitted | claimed, and at least one transaction signed; its outcome is not known | the ledger |
 * | settled | mined, with the proof that its payment method requires in the receipt | the chain |
 * | failed | mined and reverted, or skipped within a batch | the chain |
 * | recovered | failed, then forwarded because the authorization had been submitted directly to the token | the chain |
 */
export type SettlementState = (typeof settlementStates)[number];

/** Stands in for the hash of a settlement that took nothing and so has no transaction. */
export const noTransaction: Hex = "0x";

/** The stored fields of a payment that is claimed for an organization. The payer's times are in unix seconds. */
export type Claim = {
  /** keccak256 of (chainId, nonce space, payer, nonce): see `settlementId`. */
  id: Hex;
  organizationId: string;
  network: NetworkName;
  chainId: number;
  /** The payment method. With `payload`, nonce and window it makes up the payer's message: see `SignedPayment`. */
  method: string;
  asset: Address;
  payer: Address;
  /** The hash of the code at the payer's address, or of its delegation (EIP-7702); null for a plain account. */
  payerCode: Hex | null;
  nonce: Hex;
  nonceSpace: Address;
  /** Two requests with the same digest are the same payment: see `fingerprintOf`. */
  digest: Hex;
  /** The settled amount, in the asset's smallest unit. */
  amount: bigint;
  /** The maximum that the signature allows; null if that is the settled amount. */
  maximum: bigint | null;
  window: SignedPayment["window"];
  payload: string | null;
  /** Where the signature sends the money; null for the network's facilitator contract, which pays the recipient. */
  payTo: Address | null;
  /**
   * The facilitator contract that settles it, whatever is configured later; null in rows of earlier versions whose
   * transaction called none.
   */
  contract: Address | null;
  signature: Hex;
  recipient: Address;
  /** Its effect on channels, if any; stored with the claim. */
  channels?: ChannelRecord;
  /** The payer's `payment-identifier`; the claim binds it for 24 h. */
  identifier?: BoundIdentifier;
};

/** An identifier of the payer's client (`payment-identifier`), with the fingerprint that tells its payment from others. */
export type BoundIdentifier = { id: string; fingerprint: Hex };

/** One authorization's entry in the ledger. Times are unix milliseconds; hex is lower case, whatever the input was. */
export type Settlement = Omit<Claim, "identifier" | "channels"> & {
  state: SettlementState;
  operator: Address;
  txNonce: number;
  /** The newest signed transaction while submitted, the mined one afterwards; {@link noTransaction} if nothing was taken. */
  transactionHash: Hex;
  blockNumber: bigint | null;
  blockHash: Hex | null;
  /** Why it failed, or, while submitted, why it is undecided again; shown to the organization. Otherwise null. */
  failure: string | null;
  /** The block it was checked against before the claim; its authorization was unused there. */
  claimedBlock: bigint;
  claimedAt: number;
  concludedAt: number | null;
  /** When the success was delivered to its organization; null before. */
  deliveredAt: number | null;
};

/**
 * Returns true if a settlement needs the operator's attention: its transaction is in a block that must be final by
 * now, but the receipt does not prove the outcome.
 */
export function isSetAside(
  { state, blockNumber, claimedAt }: Pick<Settlement, "state" | "blockNumber" | "claimedAt">,
  now: number,
): boolean {
  return state === "submitted" && blockNumber !== null && now - claimedAt > finalitySeconds * 1000;
}

/**
 * - `settle`: settles the settlements of its txNonce;
 * - `noop`: does nothing but use up its txNonce, so that later ones can be mined;
 * - `forward`: pays out what a direct submission brought to the contract; see `recoveries.ts`.
 */
export type AttemptKind = "settle" | "noop" | "forward";

/** A signed transaction. Several attempts may share a txNonce; at most one of them is ever mined. */
export type Attempt = {
  hash: Hex;
  chainId: number;
  operator: Address;
  txNonce: number;
  kind: AttemptKind;
  raw: Hex;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
  createdAt: number;
};

/** A signed attempt that has not been stored yet. */
export type SignedAttempt = Pick<Attempt, "hash" | "raw" | "maxFeePerGas" | "maxPriorityFeePerGas">;

/** The attempt that was mined and so used up the txNonce. */
export type MinedTransaction = {
  chainId: number;
  operator: Address;
  txNonce: number;
  hash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
  /** The cost of the transaction, in wei. It is shared among the settlements it concludes, by the gas each may have used. */
  gasCost?: bigint;
};

/** A transaction that decided its settlements, and the block that held it at that time. */
export type ConcludedTransaction = Omit<MinedTransaction, "chainId" | "operator" | "gasCost"> & {
  /** Unix milliseconds. */
  concludedAt: number;
  /** False if a transaction with another txNonce, named by `hash`, turned out to have made the payments. */
  hasThisTxNonce: boolean;
};

/** A range of an account's txNonces. Both bounds are optional; at most `limit` are returned. */
export type TxNonceRange = { from?: number; below?: number; limit: number };
