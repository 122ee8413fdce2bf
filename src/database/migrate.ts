import { KitError } from "../errors/base.ts";
import type { Database } from "./database.ts";

/**
 * Brings the database to the newest schema, in one transaction; returns the names of what it applied. Safe to run
 * from several processes at once.
 *
 * @throws KitError when a migration fails, or the database was migrated by a newer version of this software.
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  const migrator = await createMigrator(db);
  await refuseNewerDatabase(db, await migrator.getMigrations());
  const { error, results } = await migrator.migrateToLatest();
  if (error !== undefined) {
    const failed = results?.find(({ status }) => status === "Error")?.migrationName;
    throw new KitError(
      failed ? `The migration ${failed} failed; nothing was changed` : "The database could not be migrated",
      { cause: error },
    );
  }
  return (results ?? []).map(({ migrationName }) => migrationName);
}

/**
 * The names of the migrations that {@link migrate} would apply; changes nothing.
 *
 * @throws KitError when the database was migrated by a newer version of this software.
 */
export async function pendingMigrations(db: Database): Promise<readonly string[]> {
  const known = await (await createMigrator(db)).getMigrations();
  await refuseNewerDatabase(db, known);
  return known.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name);
}

// Imported when needed: Kysely takes longer to load than anything else here.
async function createMigrator(db: Database) {
  const [{ Migrator }, { initial }] = await Promise.all([
    import("kysely/migration"),
    import("./migrations/0001-initial.ts"),
  ]);
  // Every migration, by name, in order. A name once released never changes, nor does what stands behind it.
  return new Migrator({ db, provider: { getMigrations: async () => ({ "0001-initial": initial }) } });
}

/** An older version on a newer schema could write rows that the newer one misreads. */
async function refuseNewerDatabase(
  db: Database,
  known: readonly { name: string; executedAt?: Date | undefined }[],
): Promise<void> {
  if (known.every(({ executedAt }) => executedAt === undefined)) return;
  const applied = await db
    .$extendTables<{ kysely_migration: { name: string } }>()
    .selectFrom("kysely_migration")
    .select("name")
    .execute();
  const unknown = applied.map(({ name }) => name).filter((name) => known.every((one) => one.name !== name));
  if (unknown.length > 0) {
    throw new KitError(
      `The database is newer than this software: it has the migration ${unknown.join(", ")}`,
      {
        hints: ["Run the version that migrated it, or restore the backup from before the migration."],
      },
    );
  }
}
