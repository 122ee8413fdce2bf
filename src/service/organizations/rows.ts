import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Limits } from "./limits.ts";
import { type KeyRecord, type KeyState, type Organization, type Scope, scopes } from "./organizations.ts";

/** A row of an organization joined with its recipients: one per network, or one of nulls. */
export type NetworkRow = {
  network: NetworkName | null;
  recipient: Address | null;
  minimum_amount: string | null;
  daily_gas_budget: string | null;
  refuse_payers_with_code: number | null;
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

/** The columns that hold limits. */
export const limitColumns = ["minimum_amount", "daily_gas_budget", "refuse_payers_with_code"] as const;

export function toLimits(row: Pick<NetworkRow, (typeof limitColumns)[number]>): Limits {
  return {
    minimumAmount: row.minimum_amount === null ? null : BigInt(row.minimum_amount),
    dailyGasBudget: row.daily_gas_budget === null ? null : BigInt(row.daily_gas_budget),
    refusePayersWithCode: row.refuse_payers_with_code === 1,
  };
}

/** The scopes of a key, which are stored as one text. */
export function toScopes(text: string): Scope[] {
  const words = text.split(" ");
  return scopes.filter((scope) => words.includes(scope));
}

/** The columns that decide whether a key works. */
export type KeyTimes = { expires_at: number | null; revoked_at: number | null; replaced_by: string | null };

export function keyStateOf({ expires_at, revoked_at, replaced_by }: KeyTimes, time: number): KeyState {
  if (revoked_at !== null) return "revoked";
  if (expires_at !== null && expires_at <= time) return "expired";
  return replaced_by === null ? "active" : "replaced";
}

export function toKeyRecord(
  row: KeyTimes & { id: string; organization_id: string; scopes: string; created_at: number },
  time: number,
): KeyRecord {
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
