import type { ChannelMove } from "../methods/actions.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { RecoveryState } from "./recoveries.ts";
import type { Attempt, AttemptKind, Settlement, SettlementState } from "./settlement.ts";

/** One claimed authorization: see `Settlement`. */
export type SettlementsTable = {
  id: Hex;
  organization_id: string;
  network: NetworkName;
  chain_id: number;
  method: string;
  asset: Address;
  payer: Address;
  nonce: Hex;
  nonce_space: Address;
  digest: Hex;
  amount: string;
  maximum: string | null;
  /** Unix seconds, both bounds inclusive. */
  valid_first: string;
  valid_last: string;
  payload: string | null;
  pay_to: Address | null;
  contract: Address | null;
  signature: Hex;
  recipient: Address;
  state: SettlementState;
  operator: Address;
  tx_nonce: number;
  transaction_hash: Hex;
  block_number: number | null;
  block_hash: Hex | null;
  failure: string | null;
  claimed_block: number;
  /** For a failure: a block by which its authorization was used, until it is known how; null while unused. */
  used_by_block: number | null;
  /** For a failure: when to look again; null if there is nothing more to find. */
  next_look_at: number | null;
  claimed_at: number;
  concluded_at: number | null;
  delivered_at: number | null;
  payer_code: Hex | null;
};

/**
 * | State | Meaning |
 * |---|---|
 * | open | may still be mined |
 * | mined | is the transaction that took the txNonce |
 * | superseded | can never be mined: another transaction took its txNonce |
 */
export const attemptStates = ["open", "mined", "superseded"] as const;

type AttemptState = (typeof attemptStates)[number];

/** A signed transaction. It carries the settlements of its (chain, operator, txNonce). */
export type AttemptsTable = {
  hash: Hex;
  chain_id: number;
  operator: Address;
  tx_nonce: number;
  kind: AttemptKind;
  raw: Hex;
  max_fee_per_gas: string;
  max_priority_fee_per_gas: string;
  state: AttemptState;
  created_at: number;
};

/** A payer with claimed payments; see `lockingAccounts`. */
type AccountsTable = {
  chain_id: number;
  asset: Address;
  payer: Address;
  /** The time of the newest claim. */
  claimed_at: number;
};

/** The next txNonce of each operator on each chain. */
type OperatorNoncesTable = {
  chain_id: number;
  operator: Address;
  next_tx_nonce: number;
};

/** The cost of an organization's settlements on a network on one day (UTC, counted from 1970). */
export type GasSpendingTable = {
  organization_id: string;
  network: NetworkName;
  day: number;
  /** For all payers, with code and without. */
  gwei: number;
  /** For payers with code only. */
  gwei_with_code: number;
};

/** A manual change of an operator's next txNonce, because others had sent with its key. */
type OperatorChangesTable = {
  chain_id: number;
  operator: Address;
  at: number;
  actor: string;
  from_tx_nonce: number;
  to_tx_nonce: number;
};

/** A failed settlement whose authorization was submitted directly to the token: see `Recovery`. */
export type RecoveriesTable = {
  id: Hex;
  chain_id: number;
  proof_hash: Hex;
  proof_log_index: number;
  proof_block: number;
  state: RecoveryState;
  recoverer: Address | null;
  tx_nonce: number | null;
  problem: string | null;
  queued_at: number;
};

/** The holder of the right to settle and respond for an authorization, and when it expires unless renewed. */
type LeasesTable = {
  id: Hex;
  holder: string;
  instance_id: string;
  expires_at: number;
};

/** A request with an `Idempotency-Key`: running (`answer` null, leased by an instance) or answered. */
type IdempotencyTable = {
  organization_id: string;
  idempotency_key: string;
  body_hash: string;
  answer: string | null;
  instance_id: string;
  lease_expires_at: number;
  expires_at: number;
};

/** A channel of scheme “batch-settlement”, and the organization that opened it. */
type ChannelsTable = {
  chain_id: number;
  id: Hex;
  network: NetworkName;
  organization_id: string;
  payer: Address;
  receiver: Address;
  asset: Address;
  opened_at: number;
  /** The payer's latest announced withdrawal, and when it can be made, in unix seconds; null without one. */
  withdrawal_amount: string | null;
  withdrawal_ends_at: number | null;
};

/** An amount that a settlement moves in a channel. */
type ChannelMovesTable = {
  settlement_id: Hex;
  chain_id: number;
  /** `receiver asset` for a payout to a receiver. */
  channel_id: string;
  kind: ChannelMove["kind"];
  amount: string;
};

/** Gas money given by a sponsor, at most once per payer and token. Values and fees are in wei. */
export type GiftsTable = {
  chain_id: number;
  asset: Address;
  payer: Address;
  sponsor: Address;
  tx_nonce: number;
  value: string;
  raw: Hex;
  hash: Hex;
  max_fee_per_gas: string;
  max_priority_fee_per_gas: string;
  /** The UTC day, counted from 1970. */
  day: number;
  /** When its newest transaction was signed. */
  given_at: number;
  /** The organization whose payment it was given for; null for gifts of earlier versions. */
  organization_id: string | null;
};

/** The tables of the ledger at the newest migration. */
export type LedgerTables = {
  settlements: SettlementsTable;
  attempts: AttemptsTable;
  operator_nonces: OperatorNoncesTable;
  accounts: AccountsTable;
  gas_spending: GasSpendingTable;
  operator_changes: OperatorChangesTable;
  recoveries: RecoveriesTable;
  leases: LeasesTable;
  idempotency: IdempotencyTable;
  gifts: GiftsTable;
  channels: ChannelsTable;
  channel_moves: ChannelMovesTable;
};

/** Normalizes hex for the ledger, so that equal bytes are equal text. */
export function lowerCase(hex: Hex): Hex {
  return hex.toLowerCase() as Lowercase<Hex>;
}

/** Converts an integer for a 64-bit column, which is read back as a number. Throws a RangeError if it is not safe. */
export function toSafeInteger(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} does not fit a database integer`);
  return number;
}

export function toSettlement(row: SettlementsTable): Settlement {
  return {
    id: row.id,
    organizationId: row.organization_id,
    network: row.network,
    chainId: row.chain_id,
    method: row.method,
    asset: row.asset,
    payer: row.payer,
    payerCode: row.payer_code,
    nonce: row.nonce,
    nonceSpace: row.nonce_space,
    digest: row.digest,
    amount: BigInt(row.amount),
    maximum: row.maximum === null ? null : BigInt(row.maximum),
    window: { first: BigInt(row.valid_first), last: BigInt(row.valid_last) },
    payload: row.payload,
    payTo: row.pay_to,
    contract: row.contract,
    signature: row.signature,
    recipient: row.recipient,
    state: row.state,
    operator: row.operator,
    txNonce: row.tx_nonce,
    transactionHash: row.transaction_hash,
    blockNumber: row.block_number === null ? null : BigInt(row.block_number),
    blockHash: row.block_hash,
    failure: row.failure,
    claimedBlock: BigInt(row.claimed_block),
    claimedAt: row.claimed_at,
    // A settlement that is undecided again keeps it in its row, as a sign that its gas was charged.
    concludedAt: row.state === "submitted" ? null : row.concluded_at,
    deliveredAt: row.delivered_at,
  };
}

export function fromSettlement(settlement: Settlement): SettlementsTable {
  return {
    id: lowerCase(settlement.id),
    organization_id: settlement.organizationId,
    network: settlement.network,
    chain_id: settlement.chainId,
    method: settlement.method,
    asset: lowerCase(settlement.asset),
    payer: lowerCase(settlement.payer),
    nonce: lowerCase(settlement.nonce),
    nonce_space: lowerCase(settlement.nonceSpace),
    digest: lowerCase(settlement.digest),
    amount: settlement.amount.toString(),
    maximum: settlement.maximum === null ? null : settlement.maximum.toString(),
    valid_first: settlement.window.first.toString(),
    valid_last: settlement.window.last.toString(),
    payload: settlement.payload,
    pay_to: settlement.payTo === null ? null : lowerCase(settlement.payTo),
    contract: settlement.contract === null ? null : lowerCase(settlement.contract),
    signature: lowerCase(settlement.signature),
    recipient: lowerCase(settlement.recipient),
    state: settlement.state,
    operator: lowerCase(settlement.operator),
    tx_nonce: settlement.txNonce,
    transaction_hash: lowerCase(settlement.transactionHash),
    block_number: settlement.blockNumber === null ? null : toSafeInteger(settlement.blockNumber),
    block_hash: settlement.blockHash === null ? null : lowerCase(settlement.blockHash),
    failure: settlement.failure,
    claimed_block: toSafeInteger(settlement.claimedBlock),
    used_by_block: null,
    next_look_at: 0,
    claimed_at: settlement.claimedAt,
    concluded_at: settlement.concludedAt,
    delivered_at: settlement.deliveredAt,
    payer_code: settlement.payerCode === null ? null : lowerCase(settlement.payerCode),
  };
}

export function toAttempt(row: Omit<AttemptsTable, "state">): Attempt {
  return {
    hash: row.hash,
    chainId: row.chain_id,
    operator: row.operator,
    txNonce: row.tx_nonce,
    kind: row.kind,
    raw: row.raw,
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    createdAt: row.created_at,
  };
}

/** The columns of an attempt that was just signed. */
export function fromAttempt(attempt: Attempt): AttemptsTable {
  return {
    hash: lowerCase(attempt.hash),
    chain_id: attempt.chainId,
    operator: lowerCase(attempt.operator),
    tx_nonce: attempt.txNonce,
    kind: attempt.kind,
    raw: lowerCase(attempt.raw),
    max_fee_per_gas: attempt.maxFeePerGas.toString(),
    max_priority_fee_per_gas: attempt.maxPriorityFeePerGas.toString(),
    state: "open",
    created_at: attempt.createdAt,
  };
}
