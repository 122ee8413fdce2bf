import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";

/** What a key may be used for. */
export type Scope = "verify" | "settle";

/** An organization: whose payments are settled to the recipient it has set for each network. */
export type Organization = {
  id: string;
  name: string;
  recipients: Readonly<Partial<Record<NetworkName, Address>>>;
};

/** Whom an API key speaks for. */
export type Caller = {
  organization: Organization;
  keyId: string;
  scopes: readonly Scope[];
};

/** Organizations, their recipients and their API keys. */
export type Organizations = {
  create(organization: { id?: string; name: string }): Promise<Organization>;
  find(id: string): Promise<Organization | null>;
  setRecipient(organizationId: string, network: NetworkName, recipient: Address): Promise<void>;
  /**
   * Issues a key `x4k_<id>_<secret>`; the secret is stored as an HMAC alone and never shown again.
   * `key` imports a given one (the harness's published key) instead of drawing a new one. `expiresAt` is in unix
   * milliseconds; a key without it does not expire.
   */
  createKey(
    organizationId: string,
    options: { scopes: readonly Scope[]; expiresAt?: number; key?: string },
  ): Promise<{ key: string; keyId: string }>;
  revokeKey(keyId: string): Promise<void>;
  /** Whom a key speaks for; null when it is malformed, unknown, wrong, revoked or expired, all in the same time. */
  authenticate(key: string): Promise<Caller | null>;
};
