import { userInfo } from "node:os";
import {
  createConfigurationReader,
  type Environment,
  type VariableReader,
} from "../../config/variable-reader.ts";
import type { VariableName } from "../../config/variables.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import { clockOf, type Database } from "../../ledger/database/database.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { openReady } from "../../service/health/check-database.ts";
import { createOrganizationAdministration } from "../../service/organizations/create-organizations.ts";
import type {
  OrganizationAdministration,
  ReservedAddresses,
} from "../../service/organizations/organizations.ts";
import { ConfigurationError } from "../../util/errors.ts";

/** Reads the environment for a command that opens the database: the database's URL, and the variables of `read`. */
export function usingDatabase<E>(more: readonly VariableName[], read: (reader: VariableReader) => E) {
  return {
    usesEnvFile: true,
    variables: ["DATABASE_URL" as const, ...more],
    environment(env: Environment): { databaseUrl: string } & E {
      const reader = createConfigurationReader(env);
      const environment = { databaseUrl: reader.read("DATABASE_URL"), ...read(reader) };
      if (reader.problems().length > 0) throw new ConfigurationError(reader.problems());
      return environment;
    },
  };
}

export const usesDatabase = usingDatabase([], () => ({}));

export const usesKeys = usingDatabase(["API_KEY_PEPPER"], (reader) => {
  if (!reader.isSet("API_KEY_PEPPER")) reader.refuse("API_KEY_PEPPER", "is needed");
  return { pepper: reader.read("API_KEY_PEPPER") ?? "" };
});

/** The given name, or that of the operating system's user who runs this process. */
export function actorOr(given: string | undefined): string {
  if (given !== undefined) return given;
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}

/**
 * Opens the database for as long as the work takes.
 *
 * @throws KitError when it is not there, or behind this version, with what to do about it
 */
export async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await openReady(url, { readOnly: true });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** Opens the ledger for as long as the work takes, as {@link withDatabase} does. */
export function withLedger<T>(
  url: string,
  work: (ledger: Ledger, now: () => number) => Promise<T>,
): Promise<T> {
  return withDatabase(url, (db) =>
    work(createLedger({ db, instanceId: crypto.randomUUID() }), clockOf(db).now),
  );
}

/** Opens the organizations for as long as the work takes; what changes is noted as done by `actor`. */
export function withOrganizations<T>(
  options: { databaseUrl: string; actor?: string | undefined; reserved?: ReservedAddresses },
  work: (organizations: OrganizationAdministration) => Promise<T>,
): Promise<T> {
  const { databaseUrl, actor, reserved = {} } = options;
  return withDatabase(databaseUrl, (db) =>
    work(createOrganizationAdministration({ db, now: clockOf(db).now, actor: actorOr(actor), reserved })),
  );
}
