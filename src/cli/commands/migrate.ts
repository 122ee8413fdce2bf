import {
  type MigrationSummary,
  migrate as migrateDatabase,
  pendingMigrations,
} from "../../ledger/database/migrate.ts";
import { openDatabase } from "../../ledger/database/open-database.ts";
import { openAsIs } from "../../service/health/database.ts";
import { defineCommand, flag, jsonFlag } from "../kit/command.ts";
import { usesDatabase } from "../kit/database.ts";

export const migrateCommand = defineCommand({
  ...usesDatabase,
  options: {
    "dry-run": flag("say what would be done, and do nothing"),
    json: jsonFlag,
  },

  async run({ "dry-run": dryRun }, _terminal, { databaseUrl }) {
    const migrations = dryRun ? await findPending(databaseUrl) : await apply(databaseUrl);
    const lines = migrations.map(
      ({ name, summary }) => `${dryRun ? "would apply" : "applied"}  ${name}: ${summary}`,
    );
    lines.push(
      dryRun && migrations.length > 0
        ? "Nothing was changed. Make a backup, and stop what uses the database, before it is."
        : "The database is up to date.",
    );
    return { json: { applied: !dryRun, migrations }, text: lines.join("\n") };
  },
});

async function apply(url: string): Promise<readonly MigrationSummary[]> {
  const db = await openDatabase({ url });
  try {
    return await migrateDatabase(db);
  } finally {
    await db.destroy();
  }
}

async function findPending(url: string): Promise<readonly MigrationSummary[]> {
  // A file that does not exist would be made by opening it; all that is known of it is that it is empty.
  const state = await openAsIs(url);
  if (state.kind === "ready") {
    await state.db.destroy();
    return [];
  }
  const db = await openDatabase({ url: state.kind === "missing" ? "sqlite::memory:" : url });
  try {
    return await pendingMigrations(db);
  } finally {
    await db.destroy();
  }
}
