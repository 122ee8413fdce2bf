import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { RecoveryState } from "./recoveries.ts";
import type { AttemptKind, SettlementState } from "./settlement.ts";

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
  /** Unix seconds, both included. */
  valid_first: string;
  valid_last: string;
  payload: string | null;
  pay_to: Address | null;
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
  /** Of a failure: a block by which its authorization was used, before it is known how; null while it is not. */
  used_by_block: number | null;
  /** Of a failure: when it is looked at again; null when there is nothing more to look for. */
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
type AttemptState = "open" | "mined" | "superseded";

/** One signed transaction. It carries the settlements of its (chain, operator, txNonce). */
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

/** A payer whose payments were claimed; see `lockAccounts`. */
type AccountsTable = {
  chain_id: number;
  asset: Address;
  payer: Address;
  /** The last time. */
  claimed_at: number;
};

/** The next txNonce of each operator on each chain. */
type OperatorNoncesTable = {
  chain_id: number;
  operator: Address;
  next_tx_nonce: number;
};

/** What an organization's settlements on a network have cost on one day (UTC, counted from 1970). */
export type GasSpendingTable = {
  organization_id: string;
  network: NetworkName;
  day: number;
  /** Of payers with code and without. */
  gwei: number;
  /** Of payers with code alone. */
  gwei_with_code: number;
};

/** A txNonce that an operator goes on from by hand, because others had sent with its key. */
type OperatorChangesTable = {
  chain_id: number;
  operator: Address;
  at: number;
  actor: string;
  from_tx_nonce: number;
  to_tx_nonce: number;
};

/** A failed settlement whose authorization was submitted straight to the token: see `Recovery`. */
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

/** Who holds the right to settle and answer an authorization, and until when without renewal. */
type LeasesTable = {
  id: Hex;
  holder: string;
  instance_id: string;
  expires_at: number;
};

/** A request that is running (`answer` null, leased by an instance) or answered, under its `Idempotency-Key`. */
type IdempotencyTable = {
  organization_id: string;
  idempotency_key: string;
  body_hash: string;
  answer: string | null;
  instance_id: string;
  lease_expires_at: number;
  expires_at: number;
};

/** The tables of the ledger, as the newest migration leaves them. */
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
};
