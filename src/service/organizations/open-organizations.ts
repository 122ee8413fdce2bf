import { attempt, readDatabaseUrl, readPepper } from "../../config/values.ts";
import { clockOf } from "../../ledger/database/database.ts";
import { openDatabase, requireMigrated } from "../../ledger/database/open-database.ts";
import { isMissingFile } from "../../ledger/database/sqlite/open-sqlite.ts";
import type { Address } from "../../protocol/hex.ts";
import { addToBuiltIn, type Network, type NetworkName, type NetworkTier } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import {
  aBoolean,
  anObject,
  aText,
  needed,
  objects,
  oneOf,
  requireArgument,
  requireGiven,
  type Wanted,
} from "../../util/given.ts";
import { self } from "../../util/self-command.ts";
import { createOrganizations } from "./create-organizations.ts";
import { type Organizations, reserveByTier, scopes } from "./organizations.ts";

export type { Address } from "../../protocol/hex.ts";
export type { NetworkName } from "../../protocol/networks.ts";
export { KitError } from "../../util/errors.ts";
export {
  type Caller,
  type Change,
  type ChangeAction,
  type IssuedKey,
  type KeyIssuing,
  type KeyRecord,
  type KeyState,
  type Limits,
  type Organization,
  type OrganizationAdministration,
  type Organizations,
  type PepperState,
  type Scope,
  scopes,
} from "./organizations.ts";

export type OpenOrganizationsOptions = {
  /** The database of `serve`: `sqlite:PATH` or `postgres://…`. */
  databaseUrl: string;
  /** The secret for hashing API keys: `API_KEY_PEPPER` of `serve`. With a different one, no existing key is valid. */
  pepper: string;
  /** Who makes the changes, for the audit trail: a person or a program, 1 to 100 characters on one line. */
  actor: string;
  /** The facilitator contracts of `serve`, which are refused as recipients like every network's USDC. */
  facilitatorContracts?: Partial<Record<NetworkTier, Address>>;
  /** Networks of `serve` beyond the built-in ones. Recipients can be set for them; their tokens are refused as recipients. */
  addedNetworks?: readonly Network[];
};

const wantedOptions: Readonly<Record<keyof OpenOrganizationsOptions, Wanted>> = {
  databaseUrl: needed(aText),
  pepper: needed(aText),
  actor: needed(aText),
  facilitatorContracts: anObject,
  addedNetworks: objects,
};

/** Organizations with an open database connection, which must be closed. */
export type OpenOrganizations = Organizations & AsyncDisposable & { close(): Promise<void> };

/**
 * Opens the organizations of a facilitator from another program. Its changes take effect within a second on every instance,
 * and are recorded in the audit trail under the actor's name.
 *
 * @example
 * ```ts
 * import { openOrganizations } from "x402-facilitator-kit/organizations";
 *
 * await using organizations = await openOrganizations({
 *   databaseUrl: "postgres://USER:PASSWORD@HOST/DATABASE",
 *   pepper: process.env.API_KEY_PEPPER ?? "",
 *   actor: "sign-up",
 * });
 * const { id } = await organizations.create({ name: "My shop" });
 * await organizations.setRecipient(id, "base", "0x857b06519E91e3A54538791bDbb0E22373e36b66");
 * const { key } = await organizations.createKey(id, { scopes: ["verify", "settle"] });
 * ```
 *
 * An imported key must look random: the published keys of the local chains and the fixtures are refused.
 *
 * @throws ConfigurationError, a KitError, when an option is unknown, missing, or of the wrong type
 * @throws KitError when `serve` would reject the URL or the pepper, or when the database cannot be opened, does not exist, or is
 * not at this version, which `x402-kit migrate` fixes.
 */
export async function openOrganizations(options: OpenOrganizationsOptions): Promise<OpenOrganizations> {
  requireGiven(options, wantedOptions);
  const { databaseUrl, pepper, actor, facilitatorContracts = {} } = options;
  requireServed("database URL", () => readDatabaseUrl(databaseUrl));
  requireServed("pepper", () => readPepper(pepper));
  if (isMissingFile(databaseUrl)) {
    throw new KitError(`There is no database ${databaseUrl}`, {
      code: "not-found",
      hints: [`${self} migrate creates it.`],
    });
  }
  const db = await openDatabase({ url: databaseUrl });
  try {
    await requireMigrated(db);
    const { all, names } = addToBuiltIn(options.addedNetworks ?? []);
    const reserved = reserveByTier(facilitatorContracts, [], all);
    const close = () => db.destroy();
    const organizations = createOrganizations({ db, pepper, now: clockOf(db).now, actor, reserved });
    return { ...checkGiven(organizations, names), close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** @throws KitError if `serve` would reject a value: keys made with it would work nowhere */
function requireServed(name: string, read: () => void): void {
  const value = attempt(read);
  if ("value" in value) return;
  throw new KitError(`The ${name} ${value.problem}`, {
    hints: ["It must be the one of serve, which takes no other."],
  });
}

/** Random secrets have many more distinct characters; the published keys have three. */
const fewestCharacters = 8;

/** @throws KitError if the secret of a key can be guessed, as in a published key */
function requireSecret(key: string): void {
  const secret = key.slice(key.lastIndexOf("_") + 1);
  if (new Set(secret).size >= fewestCharacters) return;
  throw new KitError("The secret of this API key is no secret: it has hardly any different characters", {
    hints: ["The published keys are for local chains and tests. Leave `key` out, and one is drawn."],
  });
}

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

/** Otherwise a recipient for a misspelled network would be stored, and payments refused as if there were none. */
const ofThese = (networks: readonly NetworkName[]): Wanted => ({
  ...oneOf(networks),
  what: `one of ${networks.join(", ")}; others are known with the option addedNetworks`,
});

const someScopes: Wanted = {
  what: `a list that has ${scopes.join(", ")} or both, and nothing else`,
  fits: (value) => Array.isArray(value) && value.every((one) => oneOf(scopes).fits(one)),
};

/**
 * Adds argument checks for callers, which may be JavaScript: a misspelled scope or expiry is rejected and not ignored,
 * which would give a key unintended rights.
 */
function checkGiven(organizations: Organizations, networks: readonly NetworkName[]): Organizations {
  const requireNetwork = (network: unknown) => requireArgument("network", network, ofThese(networks));
  const requireTexts = (given: Readonly<Record<string, unknown>>) => {
    for (const [name, value] of Object.entries(given)) requireArgument(name, value, aText);
  };
  return {
    ...organizations,
    create: checked(organizations.create, (organization) =>
      requireGiven(organization, { id: aText, name: needed(aText) }, "organization"),
    ),
    find: checked(organizations.find, (id) => requireTexts({ id })),
    setRecipient: checked(organizations.setRecipient, (organizationId, network, recipient) => {
      requireTexts({ organizationId, recipient });
      requireNetwork(network);
    }),
    setLimits: checked(organizations.setLimits, (organizationId, network, limits) => {
      requireTexts({ organizationId });
      requireNetwork(network);
      const wanted = { minimumAmount: limit, dailyGasBudget: limit, refusePayersWithCode: aBoolean };
      requireGiven(limits, wanted, "limits");
    }),
    listKeys: checked(organizations.listKeys, (organizationId) => requireTexts({ organizationId })),
    listChanges: checked(organizations.listChanges, (organizationId) => requireTexts({ organizationId })),
    revokeKey: checked(organizations.revokeKey, (keyId) => requireTexts({ keyId })),
    createKey: checked(organizations.createKey, (organizationId, options) => {
      requireTexts({ organizationId });
      requireGiven(options, { scopes: needed(someScopes), expiresAt: time, key: aText });
      if (options.key !== undefined) requireSecret(options.key);
    }),
    rotateKey: checked(organizations.rotateKey, (keyId, options) => {
      requireTexts({ keyId });
      requireGiven(options, { graceMs: needed(duration), expiresAt: time });
    }),
    // Anything but a string is malformed, and takes as long as a wrong key.
    authenticate: (key) => organizations.authenticate(typeof key === "string" ? key : ""),
  };
}

/** The same function, with a check of its arguments. */
function checked<Args extends unknown[], T>(
  call: (...args: Args) => Promise<T>,
  check: (...args: Args) => void,
): (...args: Args) => Promise<T> {
  return async (...args) => {
    check(...args);
    return call(...args);
  };
}
