import type { Kysely } from "kysely";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import type { Database } from "./database.ts";
import type { Migration } from "./migrations/initial-migration.ts";
import { openPostgres } from "./postgres/open-postgres.ts";
import { openSqlite } from "./sqlite/open-sqlite.ts";

/**
 * Opens the database at `DATABASE_URL` without migrating it:
 * - `sqlite:PATH`, created if it does not exist, relative to the working directory; or `sqlite::memory:`;
 * - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters that `pg` knows (`?sslmode=verify-full`).
 *
 * @throws ConfigurationError when the URL has another form. The error never repeats the URL, which may hold a password.
 * @throws KitError when the database cannot be opened or reached.
 */
export async function openDatabase({ url }: { url: string }): Promise<Database> {
  if (url.startsWith("sqlite:")) return openSqlite(url);
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url);
  throw new ConfigurationError([
    {
      name: "DATABASE_URL",
      problem: "must begin with sqlite: or postgres://",
      example: "sqlite:./facilitator.db",
    },
  ]);
}

/** The part of a migration that the operator sees. */
export type MigrationSummary = Pick<Migration, "name" | "summary">;

/** The tables that record the applied migrations, with the names and columns that Kysely uses. */
type MigrationTables = {
  kysely_migration: { name: string; timestamp: string };
  kysely_migration_lock: { id: string; is_locked: number };
};

const lockRow = "migration_lock";

/**
 * Migrates the database to the newest schema in one transaction; returns the applied migrations. Safe to run again,
 * and from several processes at once.
 *
 * @throws KitError when a migration fails, or the database was migrated by a newer version of this software.
 */
export async function migrate(database: Database): Promise<readonly MigrationSummary[]> {
  if ((await pendingMigrations(database)).length === 0) return [];
  const known = await loadMigrations();
  try {
    await createLog(database.$extendTables<MigrationTables>());
    // Not `inTransaction`, whose time limits are made for settling: an index over millions of rows may take its time.
    return await database.transaction().execute(async (transaction) => {
      const log = transaction.$extendTables<MigrationTables>();
      // A concurrent process waits here until this transaction ends, and then finds nothing to do.
      await log
        .updateTable("kysely_migration_lock")
        .set({ is_locked: 0 })
        .where("id", "=", lockRow)
        .execute();
      const applied = await selectApplied(log);
      const pending = known.filter(({ name }) => !applied.includes(name));
      for (const { name, up } of pending) {
        await up(transaction).catch((cause: unknown) => {
          throw new KitError(`The migration ${name} failed; nothing was changed`, { cause });
        });
        const timestamp = new Date().toISOString();
        await log.insertInto("kysely_migration").values({ name, timestamp }).execute();
      }
      return pending.map(summarize);
    });
  } catch (error) {
    if (error instanceof KitError) throw error;
    throw new KitError("The database could not be migrated", { cause: error });
  }
}

/**
 * Returns the migrations that {@link migrate} would apply; changes nothing.
 *
 * @throws KitError when the database was migrated by a newer version of this software.
 */
export async function pendingMigrations(database: Database): Promise<readonly MigrationSummary[]> {
  const known = await loadMigrations();
  const log = database.$extendTables<MigrationTables>();
  const applied = (await hasLog(log)) ? await selectApplied(log) : [];
  refuseNewerDatabase(known, applied);
  return known.filter(({ name }) => !applied.includes(name)).map(summarize);
}

/**
 * Throws if the database is behind this software.
 *
 * @throws KitError that says how to migrate it, or as {@link pendingMigrations} does.
 */
export async function requireMigrated(database: Database): Promise<void> {
  const pending = await pendingMigrations(database);
  if (pending.length === 0) return;
  throw new KitError(
    `The database is behind this version: it lacks ${pending.map(({ name }) => name).join(", ")}`,
    {
      hints: [`Make a backup, stop whatever else uses the database, and run: ${self} migrate`],
    },
  );
}

/** Returns all migrations, in order. Loaded on demand, because they import Kysely, which is slow to load. */
async function loadMigrations(): Promise<readonly Migration[]> {
  return (await import("./migrations/later-migrations.ts")).migrations;
}

function summarize({ name, summary }: Migration): MigrationSummary {
  return { name, summary };
}

async function selectApplied(log: Kysely<MigrationTables>): Promise<readonly string[]> {
  const rows = await log.selectFrom("kysely_migration").select("name").execute();
  return rows.map(({ name }) => name);
}

async function hasLog(log: Kysely<MigrationTables>): Promise<boolean> {
  const tables = await log.introspection.getTables({ withInternalKyselyTables: true });
  return tables.some(({ name }) => name === "kysely_migration");
}

/** Creates the tables that record migrations. Outside the migrating transaction, whose lock is a row in one of them. */
async function createLog(log: Kysely<MigrationTables>): Promise<void> {
  const create = async () => {
    await log.schema
      .createTable("kysely_migration")
      .ifNotExists()
      .addColumn("name", "varchar(255)", (column) => column.notNull().primaryKey())
      .addColumn("timestamp", "varchar(255)", (column) => column.notNull())
      .execute();
    await log.schema
      .createTable("kysely_migration_lock")
      .ifNotExists()
      .addColumn("id", "varchar(255)", (column) => column.notNull().primaryKey())
      .addColumn("is_locked", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await log
      .insertInto("kysely_migration_lock")
      .values({ id: lockRow, is_locked: 0 })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  };
  // On Postgres, concurrent CREATE TABLEs collide despite IF NOT EXISTS, once for each of the two tables.
  await create().catch(create).catch(create);
}

/** Throws if the schema is newer: an older version could write rows that the newer one misreads. */
function refuseNewerDatabase(known: readonly Migration[], applied: readonly string[]): void {
  const unknown = applied.filter((name) => known.every((one) => one.name !== name));
  if (unknown.length > 0) {
    throw new KitError(
      `The database is newer than this software: it has the migration ${unknown.join(", ")}`,
      {
        hints: ["Run the version that migrated it, or restore the backup from before the migration."],
      },
    );
  }
}
