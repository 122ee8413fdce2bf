import type { Kysely } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";

/*
 * How values are stored, on every database alike:
 * - amounts (uint256) are decimal text: no database has an integer that wide;
 * - times are unix milliseconds, except `valid_after` and `valid_before`, which are the payer's own words: decimal
 *   text of unix seconds;
 * - times, block numbers, chain ids and txNonces are 64-bit integers that stay below 2^53, and are read as numbers;
 * - hex is lower case, so that equal bytes are equal text.
 */

/** One claimed authorization: see `Settlement`. */
export type SettlementsTable = {
  id: Hex;
  organization_id: string;
  network: NetworkName;
  chain_id: number;
  asset: Address;
  payer: Address;
  authorization_nonce: Hex;
  digest: Hex;
  value: string;
  valid_after: string;
  valid_before: string;
  signature: Hex;
  recipient: Address;
  state: "submitted" | "settled" | "failed" | "recovered";
  operator: Address;
  tx_nonce: number;
  transaction_hash: Hex;
  block_number: number | null;
  block_hash: Hex | null;
  failure: string | null;
  claimed_at: number;
  concluded_at: number | null;
  delivered_at: number | null;
};

/**
 * | State | Meaning |
 * |---|---|
 * | open | may still be mined |
 * | mined | is the transaction that took the txNonce |
 * | superseded | can never be mined: another transaction took its txNonce |
 */
export type AttemptState = "open" | "mined" | "superseded";

/** One signed transaction. The settlements of its (chain, operator, txNonce) ride on it. */
export type AttemptsTable = {
  hash: Hex;
  chain_id: number;
  operator: Address;
  tx_nonce: number;
  raw: Hex;
  max_fee_per_gas: string;
  max_priority_fee_per_gas: string;
  state: AttemptState;
  created_at: number;
};

/** The next txNonce of each operator on each chain. */
export type OperatorNoncesTable = {
  chain_id: number;
  operator: Address;
  next_tx_nonce: number;
};

/** Who holds the right to settle and answer an authorization, and until when without renewal. */
export type LeasesTable = {
  id: Hex;
  holder: string;
  instance_id: string;
  expires_at: number;
};

/** A request that is running (`answer` null, leased by an instance) or answered, under its `Idempotency-Key`. */
export type IdempotencyTable = {
  organization_id: string;
  idempotency_key: string;
  body_hash: string;
  answer: string | null;
  instance_id: string;
  lease_expires_at: number;
  expires_at: number;
};

export type OrganizationsTable = {
  id: string;
  name: string;
  created_at: number;
};

/** To whom an organization's payments go, per network. */
export type RecipientsTable = {
  organization_id: string;
  network: NetworkName;
  recipient: Address;
};

export type ApiKeysTable = {
  id: string;
  organization_id: string;
  /** HMAC-SHA-256 of the whole key with the pepper, in hex. */
  hmac: string;
  /** Scopes separated by spaces. */
  scopes: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
};

/** All tables, as the newest migration leaves them. */
export type Schema = {
  settlements: SettlementsTable;
  attempts: AttemptsTable;
  operator_nonces: OperatorNoncesTable;
  leases: LeasesTable;
  idempotency: IdempotencyTable;
  organizations: OrganizationsTable;
  recipients: RecipientsTable;
  api_keys: ApiKeysTable;
};

/** An open database. `destroy()` finishes what is under way and closes it. */
export type Database = Kysely<Schema>;
