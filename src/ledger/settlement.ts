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
 * | settled | mined, with what proves it in the receipt, as its payment method has it | the chain |
 * | failed | mined and reverted, or passed over inside a batch | the chain |
 * | recovered | failed, then forwarded because the authorization had been submitted directly to the token | the chain |
 */
export type SettlementState = (typeof settlementStates)[number];

/** The hash of no transaction: of a settlement of which nothing was taken. */
export const noTransaction: Hex = "0x";

/** The stored members of a payment when it is claimed for an organization. Times of the payer in unix seconds. */
export type Claim = {
  /** keccak256 of (chainId, nonce space, payer, nonce): see `settlementId`. */
  id: Hex;
  organizationId: string;
  network: NetworkName;
  chainId: number;
  /** The payment method; with `payload`, nonce and window it is the payer's own message: see `SignedPayment`. */
  method: string;
  asset: Address;
  payer: Address;
  /** The hash of the code at the payer's address, or of its delegation (EIP-7702); null for a plain account. */
  payerCode: Hex | null;
  nonce: Hex;
  nonceSpace: Address;
  /** Two requests are the same payment when these are: see `fingerprintOf`. */
  digest: Hex;
  /** The settled amount, in the asset's smallest unit. */
  amount: bigint;
  /** The most that the signature allows; null where that is what is settled. */
  maximum: bigint | null;
  window: SignedPayment["window"];
  payload: string | null;
  /** Where the signature lets the money go; null for the network's facilitator contract, which pays the recipient. */
  payTo: Address | null;
  /**
   * The facilitator contract that settles it, whatever is configured later; null in rows of former versions whose transaction
   * named none.
   */
  contract: Address | null;
  signature: Hex;
  recipient: Address;
  /** Its effect on channels, if it has one: kept with it. */
  channels?: ChannelRecord;
  /** The payer's `payment-identifier`; bound to it for 24 h when it is claimed. */
  identifier?: BoundIdentifier;
};

/** An identifier of the payer's client (`payment-identifier`), and what says whether another payment is the same. */
export type BoundIdentifier = { id: string; fingerprint: Hex };

/** One authorization's entry in the ledger. Times in unix milliseconds; hex in lower case, whatever was given. */
export type Settlement = Omit<Claim, "identifier" | "channels"> & {
  state: SettlementState;
  operator: Address;
  txNonce: number;
  /** The newest signed transaction while submitted; the mined one afterwards; {@link noTransaction} where nothing was taken. */
  transactionHash: Hex;
  blockNumber: bigint | null;
  blockHash: Hex | null;
  /** Why it failed, or, while submitted, why it is undecided again; for the organization. Null otherwise. */
  failure: string | null;
  /** The block that it was checked against before it was claimed: there its authorization was unused. */
  claimedBlock: bigint;
  claimedAt: number;
  concludedAt: number | null;
  /** When a success was handed to its organization; null while it is undelivered. */
  deliveredAt: number | null;
};

/**
 * Returns true for a settlement that is set aside for the operator: a block that must be final by now holds its transaction,
 * whose receipt does not prove what became of it.
 */
export function isSetAside(
  { state, blockNumber, claimedAt }: Pick<Settlement, "state" | "blockNumber" | "claimedAt">,
  now: number,
): boolean {
  return state === "submitted" && blockNumber !== null && now - claimedAt > finalitySeconds * 1000;
}

/**
 * - `settle`: settles the settlements of its txNonce;
 * - `noop`: does nothing but take its txNonce, so that later ones can be mined;
 * - `forward`: pays out what a direct submission brought to the contract; see `recoveries.ts`.
 */
export type AttemptKind = "settle" | "noop" | "forward";

/** One signed transaction. Several attempts may share a txNonce; at most one of them is ever mined. */
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

/** An attempt as its signer makes it, before it has been stored. */
export type SignedAttempt = Pick<Attempt, "hash" | "raw" | "maxFeePerGas" | "maxPriorityFeePerGas">;

/** The transaction that took a txNonce, one of its attempts. */
export type MinedTransaction = {
  chainId: number;
  operator: Address;
  txNonce: number;
  hash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
  /** The cost of the transaction, in wei: charged in equal shares to those whose settlements it concludes. */
  gasCost?: bigint;
};

/** A transaction that decided its settlements, and the block that held it then. */
export type ConcludedTransaction = Omit<MinedTransaction, "chainId" | "operator" | "gasCost"> & {
  /** Unix milliseconds. */
  concludedAt: number;
  /** False where its payments turned out to have been made by a transaction of another txNonce, which `hash` names. */
  hasThisTxNonce: boolean;
};

/** A part of an account's txNonces, both bounds optional, and how many of them at most. */
export type TxNonceRange = { from?: number; below?: number; limit: number };
