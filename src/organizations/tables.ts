import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";

type OrganizationsTable = {
  id: string;
  name: string;
  created_at: number;
};

/** To whom an organization's payments go, per network. */
type RecipientsTable = {
  organization_id: string;
  network: NetworkName;
  recipient: Address;
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
};

/** The tables of the organizations, as the newest migration leaves them. */
export type OrganizationTables = {
  organizations: OrganizationsTable;
  recipients: RecipientsTable;
  api_keys: ApiKeysTable;
};
