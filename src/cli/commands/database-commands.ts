import { readContractLists } from "../../config/served-networks.ts";
import { readMoment } from "../../config/values.ts";
import { contractVariables } from "../../config/variables.ts";
import { createLedgerArchive, type LedgerArchive, serializeRow } from "../../ledger/archive.ts";
import { type ArchivedRow, openArchive, writeArchive } from "../../ledger/archive-file.ts";
import {
  type MigrationSummary,
  migrate as migrateDatabase,
  openDatabase,
  pendingMigrations,
} from "../../ledger/database/open-database.ts";
import type { Hex } from "../../protocol/hex.ts";
import { dayMs } from "../../protocol/moments.ts";
import type { Cursor } from "../../protocol/settlement-query.ts";
import { findUnlistedContracts, openAsIs, refuseStranding } from "../../service/health/check-database.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { defineCommand, flag, jsonFlag, option, textOption } from "../kit/command.ts";
import { usesDatabase, usingDatabase, withDatabase } from "../kit/with-database.ts";

/** Settlements that are younger stay: blocks may be replaced, and shops reconcile. */
const fewestDays = 7;
/** Settlements that are read, or removed in one transaction, at a time. */
const pageSize = 200;

export const settlementsArchive = defineCommand({
  ...usesDatabase,
  options: {
    before: option(
      "TIME",
      `those claimed, concluded and expired before this time, ${fewestDays} days ago or earlier (UTC unless it has a zone)`,
      { read: readMoment, example: "2026-08-01", required: true },
    ),
    out: textOption("FILE", "the file to move them to, as JSON lines; one that exists is gone on with", {
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

  run: ({ before, out }, { print }, { databaseUrl }) =>
    withDatabase(databaseUrl, async (db) => {
      const ledger = createLedgerArchive(db);
      let archive = await openArchive(out);
      if (archive === null) {
        const rows = readRows(ledger, before);
        const first = await rows.next();
        if (first.done === true) {
          print("There is nothing to archive; no file was written.");
          return 0;
        }
        await writeArchive(out, before, startingWith(first.value, rows));
        archive = await openArchive(out);
        if (archive === null) throw new Error(`${out} has vanished`);
      } else if (archive.before !== before) {
        await archive.close();
        throw new ConfigurationError([
          {
            name: "--out",
            problem: `names an archive of settlements before ${new Date(archive.before).toISOString()}: give that time to go on with it, or the name of a new file`,
          },
        ]);
      }
      try {
        const { written, removed } = await removeRows(ledger, archive.rows);
        await ledger.removeNotes(before);
        print(
          `${written} settlements are in ${out}; ${removed} of them were removed from the ledger${written === removed ? "." : " now. The others had been before, or have changed since and stay."}`,
        );
      } finally {
        await archive.close();
      }
      return 0;
    }),
});

/** The settlements that may go, and behind them their transactions: those go once no settlement needs them. */
async function* readRows(
  ledger: LedgerArchive,
  before: number,
): AsyncGenerator<Omit<ArchivedRow, "key">, void> {
  const txNonces = new Map<string, Parameters<LedgerArchive["findAttempts"]>[0][number]>();
  let after: Cursor | null = null;
  do {
    const page = await ledger.findSettlements(before, { limit: pageSize, after });
    for (const row of page.rows) {
      const { chain_id, operator, tx_nonce } = row;
      txNonces.set(`${chain_id} ${operator} ${tx_nonce}`, { chain_id, operator, tx_nonce });
      yield { kind: "settlement", serialized: serializeRow(row) };
    }
    after = page.next;
  } while (after !== null);
  for (const some of inPieces(txNonces.values(), 50)) {
    for (const row of await ledger.findAttempts(some))
      yield { kind: "attempt", serialized: serializeRow(row) };
  }
}

async function removeRows(ledger: LedgerArchive, rows: AsyncIterable<ArchivedRow>) {
  let written = 0;
  let removed = 0;
  const settlements = new Map<Hex, string>();
  const attempts = new Map<Hex, string>();
  const removePiece = async () => {
    removed += await ledger.removeSettlements(settlements);
    await ledger.removeAttempts(attempts);
    settlements.clear();
    attempts.clear();
  };
  for await (const { kind, key, serialized } of rows) {
    if (kind === "settlement") written++;
    (kind === "settlement" ? settlements : attempts).set(key, serialized);
    if (settlements.size + attempts.size >= pageSize) await removePiece();
  }
  await removePiece();
  return { written, removed };
}

async function* startingWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T, void> {
  yield first;
  yield* rest;
}

function* inPieces<T>(values: Iterable<T>, size: number): Generator<T[]> {
  let piece: T[] = [];
  for (const value of values) {
    piece.push(value);
    if (piece.length < size) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

export const migrateCommand = defineCommand({
  ...usingDatabase([...Object.values(contractVariables), "NETWORKS_FILE"], (reader) => ({
    contracts: readContractLists(reader),
    networks: reader.networks,
  })),
  options: {
    "dry-run": flag("say what would be done, and do nothing"),
    json: jsonFlag,
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
    const contractsNeeded = needs.map(({ network, contract, settlements }) => ({
      network,
      contract,
      settlements,
    }));
    return {
      json: { applied: !dryRun, migrations, contractsNeeded },
      text: lines.join("\n"),
      // The same would be refused without the flag.
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
