import type { Address } from "../protocol/hex.ts";
import { harnessAddresses } from "./local-chains.ts";
import { testPayers } from "./test-payers.ts";

/** An organization that a published API key belongs to. */
export type TestOrganization = {
  name: string;
  /** Its recipient on every network, if it has one. */
  recipient: Address | undefined;
  /** The minimum amount of a payment, in the asset's smallest unit. */
  minimumAmount?: bigint;
  /** The maximum gas cost of settlements per day, in wei. */
  dailyGasBudget?: bigint;
  refusePayersWithCode?: boolean;
};

/** The organizations of the published API keys, by id. */
export const testOrganizations = {
  org_local: { name: "Local organization", recipient: harnessAddresses.recipient },
  org_other: { name: "Another organization", recipient: harnessAddresses.admin },
  org_unpaid: { name: "No recipient yet", recipient: undefined },
  org_blocked: { name: "Recipient blacklisted", recipient: testPayers.blacklisted.address },
  org_minimum: {
    name: "Payments of 1 USDC and more",
    recipient: harnessAddresses.recipient,
    minimumAmount: 1_000_000n,
  },
  org_frugal: {
    name: "A gas budget of 1 wei",
    recipient: harnessAddresses.recipient,
    dailyGasBudget: 1n,
  },
  org_plain: {
    name: "Plain accounts only",
    recipient: harnessAddresses.recipient,
    refusePayersWithCode: true,
  },
} as const satisfies Record<string, TestOrganization>;

/** The id of an organization with a published API key. */
export type TestOrganizationId = keyof typeof testOrganizations;

/** A published API key, which determines the outcome of an otherwise valid request. */
export type TestKey = {
  apiKey: string;
  organizationId: TestOrganizationId;
  scopes: readonly ("verify" | "settle")[];
  /** Its state in a service that has these keys. */
  state: "active" | "revoked" | "expired" | "unknown";
  /** The situation that it stands for, in one sentence. */
  standsFor: string;
};

const secret = "0000000000000000000000000000000000000000000000000000000000000402";

/** The API key with a name (letters and digits) on the local chains and in the fixtures. */
export const publishedApiKey = (name: string) => `x4k_${name}_${secret}`;

/** Builds a published API key: active and with both scopes, unless `more` says otherwise. */
function testKey<Id extends TestOrganizationId>(
  name: string,
  organizationId: Id,
  standsFor: string,
  more: Partial<Pick<TestKey, "scopes" | "state">> = {},
): TestKey & { organizationId: Id } {
  const { scopes = ["verify", "settle"], state = "active" } = more;
  return { apiKey: publishedApiKey(name), organizationId, scopes, state, standsFor };
}

/**
 * The published API keys. Like the test payers, each one has a fixed outcome. They work only in the fixtures and on local
 * chains, because no other deployment has these organizations.
 */
export const testKeys = {
  local: testKey("local", "org_local", "An active key with both scopes."),
  rival: testKey("rival", "org_other", "An active key of another organization."),
  verifyOnly: testKey("verifyOnly", "org_local", "A key that may not settle: 403.", { scopes: ["verify"] }),
  settleOnly: testKey("settleOnly", "org_local", "A key that may not verify: 403.", { scopes: ["settle"] }),
  noRecipient: testKey(
    "noRecipient",
    "org_unpaid",
    "An organization without a recipient: settle is 403, verify falls back to the default.",
  ),
  blockedRecipient: testKey(
    "blockedRecipient",
    "org_blocked",
    "An organization whose recipient the issuer has blacklisted: invalid_transaction_state.",
  ),
  minimumAmount: testKey(
    "minimumAmount",
    "org_minimum",
    "An organization that takes no payments below 1 USDC: invalid_payment_requirements.",
  ),
  gasBudget: testKey(
    "gasBudget",
    "org_frugal",
    "An organization whose gas budget of the day holds no settlement: settle is 429.",
  ),
  plainOnly: testKey("plainOnly", "org_plain", "An organization that takes plain accounts only."),
  revoked: testKey("revoked", "org_local", "A revoked key: 401.", { state: "revoked" }),
  expired: testKey("expired", "org_local", "An expired key: 401.", { state: "expired" }),
  unknown: testKey("unknown", "org_local", "A key that was never issued: 401.", { state: "unknown" }),
} as const satisfies Record<string, TestKey>;

export type TestKeyName = keyof typeof testKeys;

/**
 * The organization that is paid on the local chains. Its API key is published, like every key of the harness. It does not
 * work on other deployments, because they do not have this organization.
 */
export const localOrganization = {
  id: testKeys.local.organizationId,
  ...testOrganizations.org_local,
  apiKey: testKeys.local.apiKey,
} as const;
