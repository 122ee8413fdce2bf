import type { Generated } from "kysely";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";

type OrganizationsTable = {
  id: string;
  name: string;
  created_at: number;
  /** How many changes the audit trail has; see `lockOrganization`. */
  changes: Generated<number>;
};

/** To whom an organization's payments go, and which of them are settled, per network. */
type RecipientsTable = {
  organization_id: string;
  network: NetworkName;
  recipient: Address;
  /** Decimal text in the asset's smallest unit. */
  minimum_amount: string | null;
  /** Decimal text in wei. */
  daily_gas_budget: string | null;
  /** 1 or 0. */
  refuse_payers_with_code: Generated<number>;
};

type ApiKeysTable = {
  id: string;
  organization_id: string;
  /** HMAC-SHA-256 of the whole key with the pepper, in hex. */
  hmac: string;
  /** Scopes separated by spaces. */
  scopes: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** The id of the key that takes its place. */
  replaced_by: string | null;
};

/** One change of an organization. Rows are only ever added. */
type AuditTable = {
  organization_id: string;
  /** Counts the organization's changes from 1: a gap shows that a row was taken away. */
  change: number;
  at: number;
  actor: string;
  action: string;
  /** JSON. */
  details: string;
};

/** Which pepper the keys are hashed with; see `pepper.ts`. One row at most. */
type PepperTable = { id: number; hmac: string; set_at: number };

/** The tables of the organizations, as the newest migration leaves them. */
export type OrganizationTables = {
  organizations: OrganizationsTable;
  recipients: RecipientsTable;
  api_keys: ApiKeysTable;
  audit: AuditTable;
  pepper: PepperTable;
};
