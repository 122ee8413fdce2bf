import { explainFailure } from "../../chain/deploy/endpoints.ts";
import type { KnownNetworks } from "../../config/known-networks.ts";
import { contractVariables } from "../../config/variables.ts";
import { clockOf, type Database } from "../../ledger/database/database.ts";
import { initial } from "../../ledger/database/migrations/initial-migration.ts";
import { findOpenContracts, type OpenContract } from "../../ledger/database/open-contracts.ts";
import { migrate, openDatabase, pendingMigrations } from "../../ledger/database/open-database.ts";
import { findPlainTextHost } from "../../ledger/database/postgres/open-postgres.ts";
import { isMissingFile } from "../../ledger/database/sqlite/open-sqlite.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import type { NetworkTier } from "../../protocol/networks.ts";
import { plural } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { type Check, failed, ok, warning } from "./check.ts";

/** The state of a database: `ready` for this version, `behind` it, missing, or unreadable for a reason. */
export type DatabaseState =
  | { kind: "ready"; db: Database }
  | { kind: "behind"; pending: readonly string[] }
  | { kind: "missing" }
  | { kind: "unreadable"; reason: string; advice: string };

/** Opens a database without changing it, for later writes unless `readOnly` is set. The caller must close a `ready` one. */
export async function openAsIs(url: string, { readOnly = false } = {}): Promise<DatabaseState> {
  if (isMissingFile(url)) return { kind: "missing" };
  let db: Database | undefined;
  try {
    db = await openDatabase({ url });
    if (!readOnly && !url.startsWith("sqlite:") && (await isReadOnlySession(db))) throw takesNoWrites;
    const pending = await pendingMigrations(db);
    if (pending.length === 0) return { kind: "ready", db };
    await db.destroy();
    return { kind: "behind", pending: pending.map(({ name }) => name) };
  } catch (error) {
    await db?.destroy();
    const [advice = "Check DATABASE_URL, and that this machine and user may use it."] =
      error instanceof KitError ? error.hints : [];
    return { kind: "unreadable", reason: explainFailure(error), advice };
  }
}

const takesNoWrites = new KitError("The database takes no writes from this user", {
  hints: [
    "If the server is the primary: alter role … (or database …) set default_transaction_read_only = off, and see whether DATABASE_URL sets it.",
  ],
});

/** Returns true if Postgres lets a new transaction only read. Opening a database already rejects a replica. */
async function isReadOnlySession(db: Database): Promise<boolean> {
  const row = await db
    .selectNoFrom(({ fn, val }) =>
      fn<string>("current_setting", [val("transaction_read_only")]).as("setting"),
    )
    .executeTakeFirst();
  return row?.setting === "on";
}

/**
 * Opens a database that must exist and be up to date.
 *
 * @param onMigrated if given, a database that is behind or missing is migrated, and this is called with the applied
 * migrations
 * @param readOnly true for callers that only read, or report a failed write themselves
 * @throws KitError when it cannot be used, with advice
 */
export async function openReady(
  url: string,
  {
    onMigrated,
    readOnly,
  }: { onMigrated?: ((migrations: readonly string[]) => void) | undefined; readOnly?: boolean } = {},
): Promise<Database> {
  const state = await openAsIs(url, { readOnly });
  if (state.kind === "ready") return state.db;
  if (state.kind === "unreadable" || onMigrated === undefined) {
    const { detail, advice } = checkDatabase(url, state);
    throw new KitError(`The database cannot be used: ${detail}`, {
      hints: advice === undefined ? [] : [advice],
    });
  }
  const db = await openDatabase({ url });
  try {
    onMigrated((await migrate(db)).map(({ name }) => name));
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** The state of a database as a check. The URL is not shown, since it may contain a password. */
export function checkDatabase(url: string, state: DatabaseState): Check {
  const what = url.startsWith("sqlite:") ? `SQLite, ${url.slice("sqlite:".length)}` : "Postgres";
  const advice = `Run ${self} migrate, or start with ${self} serve --migrate.`;
  switch (state.kind) {
    case "ready":
      return ok("database", `${what}: up to date`);
    case "behind":
      return failed("database", `${what}: behind this version by ${state.pending.join(", ")}`, { advice });
    case "missing":
      return failed("database", `${what}: does not exist yet`, { advice });
    case "unreadable":
      return failed("database", state.reason, { advice: state.advice });
  }
}

/** The configured facilitator contracts by tier, and the known networks. */
export type ConfiguredContracts = {
  contracts: Partial<Record<NetworkTier, readonly Address[]>>;
  networks: Pick<KnownNetworks, "named">;
};

/** A contract that undecided settlements use but the configuration lacks, with advice. */
export type UnlistedContract = OpenContract & { detail: string; advice: string };

/** Finds the contracts that undecided settlements of a database use but the configuration lacks; changes nothing. */
export async function findUnlistedContracts(
  url: string,
  { contracts, networks }: ConfiguredContracts,
): Promise<readonly UnlistedContract[]> {
  if (isMissingFile(url)) return [];
  const db = await openDatabase({ url });
  try {
    const isNew = (await pendingMigrations(db)).some(({ name }) => name === initial.name);
    const open = isNew ? [] : await findOpenContracts(db);
    return open.flatMap((one) => {
      const { network, contract, settlements } = one;
      // Even for a network that is not served now: its settlements continue when it is.
      const tier = networks.named(network)?.tier;
      // For a network that no file names anymore, any configured contract counts.
      const configured = tier === undefined ? Object.values(contracts).flat() : (contracts[tier] ?? []);
      if (configured.some((known) => sameAddress(known, contract))) return [];
      const detail = `${plural(settlements, "undecided settlement")} of ${network} ${settlements === 1 ? "goes" : "go"} through ${contract}, which is not configured`;
      const advice = `Name it in ${contractVariables[tier ?? "mainnet"]}, after the contract that is offered and a comma.`;
      return [{ ...one, detail, advice }];
    });
  } finally {
    await db.destroy();
  }
}

/** Makes a check for each contract that undecided settlements need but the configuration lacks; it fails before a migration. */
export async function checkOpenContracts(
  url: string,
  configured: ConfiguredContracts,
  { kind }: DatabaseState,
): Promise<readonly Check[]> {
  if (kind !== "ready" && kind !== "behind") return [];
  const unlisted = await findUnlistedContracts(url, configured);
  return unlisted.map(({ detail, advice }) =>
    kind === "behind" ? failed("contracts", detail, { advice }) : warning("contracts", detail, advice),
  );
}

/** @throws KitError if a migration would strand settlements in flight */
export async function refuseStranding(url: string, configured: ConfiguredContracts): Promise<void> {
  const state = await openAsIs(url);
  if (state.kind === "ready") await state.db.destroy();
  // Without any configured contract, this is not the configuration of a service.
  if (state.kind !== "behind" || Object.keys(configured.contracts).length === 0) return;
  const unlisted = await findUnlistedContracts(url, configured);
  if (unlisted.length === 0) return;
  throw new KitError("Nothing was changed: settlements that are under way would be stranded", {
    hints: unlisted.map(({ detail, advice }) => `${detail}. ${advice}`),
  });
}

/** How far this machine's clock may be from the database's, in milliseconds. */
const toleratedMs = 2_000;

/** Warns if this machine's clock differs from the database's, by which leases, keys and budgets are timed; otherwise null. */
export function warnOfClock(db: Database): Check | null {
  const aheadMs = Date.now() - clockOf(db).now();
  if (Math.abs(aheadMs) <= toleratedMs) return null;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return warning(
    "clock",
    `this machine's clock is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's`,
    "Let both follow NTP. Leases go by the database's clock; the age of blocks is judged by this machine's.",
  );
}

/** Warns if Postgres is on another machine and reached without TLS; null for any other database. */
export async function warnOfPlainText(url: string): Promise<Check | null> {
  if ((await findPlainTextHost(url)) === null) return null;
  return warning(
    "database",
    "Postgres is on another machine and not reached by TLS: its password and payments can be read on the way",
    "Add sslmode=verify-full to the parameters of DATABASE_URL.",
  );
}
