import type { Address } from "../protocol/hex.ts";
import { harnessAccounts } from "./accounts.ts";
import { testPayers } from "./test-payers.ts";

/** An organization that a published API key speaks for. */
export type TestOrganization = {
  name: string;
  /** Where it is paid, on every network; undefined when it has not said. */
  recipient: Address | undefined;
  /** The least amount of one payment, in the asset's smallest unit. */
  minimumAmount?: bigint;
  /** The most that settling may cost in gas on one day, in wei. */
  dailyGasBudget?: bigint;
};

/** The organizations behind the published API keys, by their ids. */
export const testOrganizations = {
  org_local: { name: "Local organization", recipient: harnessAccounts.recipient.address },
  org_other: { name: "Another organization", recipient: harnessAccounts.admin.address },
  org_unpaid: { name: "No recipient yet", recipient: undefined },
  org_blocked: { name: "Recipient blacklisted", recipient: testPayers.blacklisted.address },
  org_minimum: {
    name: "Payments of 1 USDC and more",
    recipient: harnessAccounts.recipient.address,
    minimumAmount: 1_000_000n,
  },
  org_frugal: {
    name: "A gas budget of 1 wei",
    recipient: harnessAccounts.recipient.address,
    dailyGasBudget: 1n,
  },
} as const satisfies Record<string, TestOrganization>;

/** The id of an organization behind a published API key. */
export type TestOrganizationId = keyof typeof testOrganizations;

/** A published API key, which decides what becomes of a request that is otherwise good. */
export type TestKey = {
  apiKey: string;
  organizationId: TestOrganizationId;
  scopes: readonly ("verify" | "settle")[];
  /** What a service that has these keys thinks of it. */
  state: "active" | "revoked" | "expired" | "unknown";
  /** The situation it stands for, in one sentence. */
  standsFor: string;
};

const both = ["verify", "settle"] as const;
const secret = "0000000000000000000000000000000000000000000000000000000000000402";

/**
 * The published API keys: each stands for an outcome, as the test payers do. They work in the fixtures and on the local
 * chains, and nowhere else: no other deployment has these organizations.
 */
export const testKeys = {
  local: {
    apiKey: `x4k_local_${secret}`,
    organizationId: "org_local",
    scopes: both,
    state: "active",
    standsFor: "All is well.",
  },
  rival: {
    apiKey: `x4k_rival_${secret}`,
    organizationId: "org_other",
    scopes: both,
    state: "active",
    standsFor: "Another organization, for which all is well too.",
  },
  verifyOnly: {
    apiKey: `x4k_verifyOnly_${secret}`,
    organizationId: "org_local",
    scopes: ["verify"],
    state: "active",
    standsFor: "A key that may not settle: 403.",
  },
  settleOnly: {
    apiKey: `x4k_settleOnly_${secret}`,
    organizationId: "org_local",
    scopes: ["settle"],
    state: "active",
    standsFor: "A key that may not verify: 403.",
  },
  noRecipient: {
    apiKey: `x4k_noRecipient_${secret}`,
    organizationId: "org_unpaid",
    scopes: both,
    state: "active",
    standsFor: "An organization without a recipient: settle is 403, verify falls back to the default.",
  },
  blockedRecipient: {
    apiKey: `x4k_blockedRecipient_${secret}`,
    organizationId: "org_blocked",
    scopes: both,
    state: "active",
    standsFor: "An organization whose recipient the issuer has blacklisted: invalid_transaction_state.",
  },
  minimumAmount: {
    apiKey: `x4k_minimumAmount_${secret}`,
    organizationId: "org_minimum",
    scopes: both,
    state: "active",
    standsFor: "An organization that takes no payments below 1 USDC: invalid_payment_requirements.",
  },
  gasBudget: {
    apiKey: `x4k_gasBudget_${secret}`,
    organizationId: "org_frugal",
    scopes: both,
    state: "active",
    standsFor: "An organization whose gas budget of the day holds no settlement: settle is 429.",
  },
  revoked: {
    apiKey: `x4k_revoked_${secret}`,
    organizationId: "org_local",
    scopes: both,
    state: "revoked",
    standsFor: "A key that was taken back: 401.",
  },
  expired: {
    apiKey: `x4k_expired_${secret}`,
    organizationId: "org_local",
    scopes: both,
    state: "expired",
    standsFor: "A key whose time is over: 401.",
  },
  unknown: {
    apiKey: `x4k_unknown_${secret}`,
    organizationId: "org_local",
    scopes: both,
    state: "unknown",
    standsFor: "A key that was never issued: 401.",
  },
} as const satisfies Record<string, TestKey>;

/** The name of a published API key. */
export type TestKeyName = keyof typeof testKeys;
