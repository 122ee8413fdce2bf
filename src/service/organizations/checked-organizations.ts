import type { NetworkName } from "../../protocol/networks.ts";
import {
  aBoolean,
  aText,
  needed,
  oneOf,
  requireArgument,
  requireGiven,
  type Wanted,
} from "../../util/given.ts";
import { type Organizations, scopes } from "./organizations.ts";

const limit: Wanted = {
  what: "a bigint, or null for none",
  fits: (value) => value === null || typeof value === "bigint",
  example: "10_000n",
};

const time: Wanted = {
  what: "a time in unix milliseconds",
  fits: (value) => Number.isSafeInteger(value),
  example: "Date.now() + 86_400_000",
};

const duration: Wanted = {
  what: "a whole number of milliseconds",
  fits: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
};

/** A recipient for a misspelt network would be stored, and payments refused as if there were none. */
const ofThese = (networks: readonly NetworkName[]): Wanted => ({
  ...oneOf(networks),
  what: `one of ${networks.join(", ")}; others are known with the option addedNetworks`,
});

const someScopes: Wanted = {
  what: `a list that has ${scopes.join(", ")} or both, and nothing else`,
  fits: (value) => Array.isArray(value) && value.every((one) => oneOf(scopes).fits(one)),
};

/**
 * The same for programs, which may be JavaScript: a scope or an expiry that is misspelt is refused, and not left out,
 * which would give a key other rights than were meant.
 */
export function checkGiven(organizations: Organizations, networks: readonly NetworkName[]): Organizations {
  const requireNetwork = (network: unknown) => requireArgument("network", network, ofThese(networks));
  const requireTexts = (given: Readonly<Record<string, unknown>>) => {
    for (const [name, value] of Object.entries(given)) requireArgument(name, value, aText);
  };
  return {
    ...organizations,
    async create(organization) {
      requireGiven(organization, { id: aText, name: needed(aText) }, "organization");
      return organizations.create(organization);
    },
    async find(id) {
      requireTexts({ id });
      return organizations.find(id);
    },
    async setRecipient(organizationId, network, recipient) {
      requireTexts({ organizationId, recipient });
      requireNetwork(network);
      return organizations.setRecipient(organizationId, network, recipient);
    },
    async setLimits(organizationId, network, limits) {
      requireTexts({ organizationId });
      requireNetwork(network);
      const wanted = { minimumAmount: limit, dailyGasBudget: limit, refusePayersWithCode: aBoolean };
      requireGiven(limits, wanted, "limits");
      return organizations.setLimits(organizationId, network, limits);
    },
    async listKeys(organizationId) {
      requireTexts({ organizationId });
      return organizations.listKeys(organizationId);
    },
    async listChanges(organizationId) {
      requireTexts({ organizationId });
      return organizations.listChanges(organizationId);
    },
    async revokeKey(keyId) {
      requireTexts({ keyId });
      return organizations.revokeKey(keyId);
    },
    async createKey(organizationId, options) {
      requireTexts({ organizationId });
      requireGiven(options, { scopes: needed(someScopes), expiresAt: time, key: aText });
      return organizations.createKey(organizationId, options);
    },
    async rotateKey(keyId, options) {
      requireTexts({ keyId });
      requireGiven(options, { graceMs: needed(duration), expiresAt: time });
      return organizations.rotateKey(keyId, options);
    },
    // What is no text is malformed, and takes as long as a wrong key.
    authenticate: (key) => organizations.authenticate(typeof key === "string" ? key : ""),
  };
}
