import { readContractLists } from "../../config/served-networks.ts";
import { readMoment } from "../../config/values.ts";
import { contractVariables } from "../../config/variables.ts";
import { archiveSettlements, openArchive } from "../../ledger/archive.ts";
import {
  type MigrationSummary,
  migrate as migrateDatabase,
  openDatabase,
  pendingMigrations,
} from "../../ledger/database/open-database.ts";
import { dayMs } from "../../protocol/moments.ts";
import { findUnlistedContracts, openAsIs, refuseStranding } from "../../service/health/check-database.ts";
import { defineCommand, flag, option, textOption } from "../kit/command.ts";
import { usesDatabase, usingDatabase, withDatabase } from "../kit/with-database.ts";

/** The minimum age for archiving: the blocks of younger settlements may be replaced, and shops still reconcile them. */
const fewestDays = 7;

export const settlementsArchive = defineCommand({
  ...usesDatabase,
  options: {
    before: option(
      "TIME",
      `those claimed, concluded and expired before this time, ${fewestDays} days ago or earlier (UTC unless it has a zone)`,
      { read: readMoment, example: "2026-08-01", required: true },
    ),
    out: textOption("FILE", "the file to move them to, as JSON lines; one that is there is written on", {
      example: "settlements-2026-07.jsonl",
      required: true,
    }),
  },

  check: ({ before }) =>
    before !== undefined && before > Date.now() - fewestDays * dayMs
      ? [
          {
            name: "--before",
            problem: `must be at least ${fewestDays} days ago: blocks of younger settlements may still be replaced`,
            example: new Date(Date.now() - (fewestDays + 1) * dayMs).toISOString().slice(0, 10),
          },
        ]
      : [],

  run: ({ before, out }, _terminal, { databaseUrl }) =>
    withDatabase(databaseUrl, async (db) => {
      const { kept, removed } = await archiveSettlements(db, before, await openArchive(out));
      const changed = kept - removed;
      return {
        json: { out, moved: removed, changed },
        text:
          kept === 0
            ? "There is nothing to archive; nothing was written."
            : `${removed} settlements were moved to ${out}.${changed > 0 ? ` ${changed} have changed meanwhile, and stay.` : ""}`,
      };
    }),
});

export const migrateCommand = defineCommand({
  ...usingDatabase([...Object.values(contractVariables), "NETWORKS_FILE"], (reader) => ({
    contracts: readContractLists(reader),
    networks: reader.networks,
  })),
  options: {
    "dry-run": flag("say what would be done, and do nothing"),
  },

  async run({ "dry-run": dryRun }, _terminal, { databaseUrl, ...configured }) {
    if (!dryRun) await refuseStranding(databaseUrl, configured);
    const needs = await findUnlistedContracts(databaseUrl, configured);
    const migrations = dryRun ? await findPending(databaseUrl) : await apply(databaseUrl);
    const lines = migrations.map(
      ({ name, summary }) => `${dryRun ? "would apply" : "applied"}  ${name}: ${summary}`,
    );
    lines.push(
      ...needs.map(({ detail, advice }) => `needed first  ${detail}. ${advice}`),
      dryRun && migrations.length > 0
        ? "Nothing was changed. Make a backup, and stop what uses the database, before it is."
        : "The database is up to date.",
    );
    const isOfService = Object.keys(configured.contracts).length > 0;
    return {
      json: { applied: !dryRun, migrations, contractsNeeded: needs },
      text: lines.join("\n"),
      // Without the flag, the migration would be refused.
      code: dryRun && migrations.length > 0 && needs.length > 0 && isOfService ? 1 : 0,
    };
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
  // Opening a missing file would create it, so an empty database takes its place.
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
