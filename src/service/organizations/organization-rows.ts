import type { Generated, Selectable } from "kysely";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import {
  type KeyRecord,
  type KeyState,
  type Limits,
  type Organization,
  type Scope,
  scopes,
} from "./organizations.ts";

type OrganizationsTable = {
  id: string;
  name: string;
  created_at: number;
  /** The number of changes in the audit trail; see `lockOrganization`. */
  changes: Generated<number>;
};

/** The recipients of an organization's payments, and the limits that apply to them, per network. */
type RecipientsTable = {
  organization_id: string;
  network: NetworkName;
  recipient: Address;
  /** Decimal text, in the asset's smallest unit. */
  minimum_amount: string | null;
  /** Decimal text, in wei. */
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
  /** The id of the key that replaces it. */
  replaced_by: string | null;
};

/** One change of an organization. Rows are only ever added. */
type AuditTable = {
  organization_id: string;
  /** Counts the organization's changes from 1: a gap shows that a row was removed. */
  change: number;
  at: number;
  actor: string;
  action: string;
  /** JSON. */
  details: string;
};

/** Records which pepper the keys are hashed with; see `createPepperRecord`. At most one row. */
type PepperTable = { id: number; hmac: string; set_at: number };

/** The tables of the organizations, as of the newest migration. */
export type OrganizationTables = {
  organizations: OrganizationsTable;
  recipients: RecipientsTable;
  api_keys: ApiKeysTable;
  audit: AuditTable;
  pepper: PepperTable;
};

/** A row of an organization joined with its recipients: one per network, or one of nulls. */
export type NetworkRow = {
  [Column in Exclude<keyof RecipientsTable, "organization_id">]: Selectable<RecipientsTable>[Column] | null;
};

export const networkColumns = [
  "recipients.network",
  "recipients.recipient",
  "recipients.minimum_amount",
  "recipients.daily_gas_budget",
  "recipients.refuse_payers_with_code",
] as const;

export function toOrganization(id: string, name: string, rows: readonly NetworkRow[]): Organization {
  const recipients: Partial<Record<NetworkName, Address>> = {};
  const limits: Partial<Record<NetworkName, Limits>> = {};
  for (const row of rows) {
    if (row.network === null || row.recipient === null) continue;
    recipients[row.network] = row.recipient;
    const limited = toLimits(row);
    const { minimumAmount, dailyGasBudget, refusePayersWithCode } = limited;
    if (minimumAmount !== null || dailyGasBudget !== null || refusePayersWithCode) {
      limits[row.network] = limited;
    }
  }
  return { id, name, recipients, limits };
}

export const limitColumns = ["minimum_amount", "daily_gas_budget", "refuse_payers_with_code"] as const;

export function toLimits(row: Pick<NetworkRow, (typeof limitColumns)[number]>): Limits {
  return {
    minimumAmount: row.minimum_amount === null ? null : BigInt(row.minimum_amount),
    dailyGasBudget: row.daily_gas_budget === null ? null : BigInt(row.daily_gas_budget),
    refusePayersWithCode: row.refuse_payers_with_code === 1,
  };
}

/** Reads the scopes of a key, which are stored as one text. */
export function toScopes(text: string): Scope[] {
  const words = text.split(" ");
  return scopes.filter((scope) => words.includes(scope));
}

/** The columns that decide if a key works. */
export type KeyTimes = Pick<ApiKeysTable, "expires_at" | "revoked_at" | "replaced_by">;

export function keyStateOf({ expires_at, revoked_at, replaced_by }: KeyTimes, time: number): KeyState {
  if (revoked_at !== null) return "revoked";
  if (expires_at !== null && expires_at <= time) return "expired";
  return replaced_by === null ? "active" : "replaced";
}

export function toKeyRecord(row: Omit<ApiKeysTable, "hmac">, time: number): KeyRecord {
  return {
    keyId: row.id,
    organizationId: row.organization_id,
    scopes: toScopes(row.scopes),
    state: keyStateOf(row, time),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    replacedBy: row.replaced_by,
  };
}
