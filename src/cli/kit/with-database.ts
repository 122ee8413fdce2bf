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

/** Reads the environment for a command that opens the database: its URL, and the variables that `read` reads. */
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

/** The given name, or the name of the operating system user who runs this process. */
export function actorOr(given: string | undefined): string {
  if (given !== undefined) return given;
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user id without a name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}

/**
 * Opens the database while `work` runs.
 *
 * @throws KitError if it is not there or behind this version; the error says what to do
 */
export async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await openReady(url, { readOnly: true });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** Opens the ledger while `work` runs, like {@link withDatabase}. */
export function withLedger<T>(
  url: string,
  work: (ledger: Ledger, now: () => number) => Promise<T>,
): Promise<T> {
  return withDatabase(url, (db) =>
    work(createLedger({ db, instanceId: crypto.randomUUID() }), clockOf(db).now),
  );
}

/** Opens the organizations while `work` runs. Changes are recorded as made by `actor`. */
export function withOrganizations<T>(
  options: { databaseUrl: string; actor?: string | undefined; reserved?: ReservedAddresses },
  work: (organizations: OrganizationAdministration) => Promise<T>,
): Promise<T> {
  const { databaseUrl, actor, reserved = {} } = options;
  return withDatabase(databaseUrl, (db) =>
    work(createOrganizationAdministration({ db, now: clockOf(db).now, actor: actorOr(actor), reserved })),
  );
}
