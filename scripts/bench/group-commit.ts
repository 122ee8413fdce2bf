import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { Kysely, type SqliteDatabase, SqliteDialect } from "kysely";
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrate.ts";
import { openDatabase } from "../../src/database/open-database.ts";
import {
  chainId,
  createTestLedger,
  operator,
  paymentOf,
  settled,
} from "../../test/support/ledger/test-ledger.ts";

/*
 * The effect of shared commits on an SQLite file: concurrent payments pass through the ledger, each with a lease, a
 * look-up, a claim, a conclusion and the release of its lease. With this project's dialect, and with Kysely's own
 * over `node:sqlite`; in turns, medians. See docs/decisions/0018-shared-commits.md.
 */

const rounds = Number(process.argv[2] ?? 5);
const variants = {
  "shared commits": (file: string) => openDatabase({ url: `sqlite:${file}` }),
  "a commit each": openWithOwnDialect,
};
const folder = mkdtempSync(join(tmpdir(), "x402-kit-bench-"));
let files = 0;

for (const concurrency of [1, 16, 64]) {
  const figures = new Map<string, { rate: number; cpu: number }[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [name, open] of Object.entries(variants)) {
      const figure = await measure(open, concurrency, concurrency === 1 ? 300 : 1_500);
      figures.set(name, [...(figures.get(name) ?? []), figure]);
    }
  }
  for (const [name, all] of figures) {
    const rate = median(all.map((one) => one.rate));
    const cpu = median(all.map((one) => one.cpu));
    console.log(
      `${concurrency} at once, ${name}: ${Math.round(rate)} payments/s, ${cpu.toFixed(2)} ms of CPU each`,
    );
  }
}
rmSync(folder, { recursive: true });

async function measure(open: (file: string) => Promise<Database>, concurrency: number, payments: number) {
  const db = await open(join(folder, `${++files}.db`));
  await migrate(db);
  const ledger = createTestLedger(db, Date.now);
  await ledger.introduce();
  let next = 0;
  const run = async () => {
    for (let number = next++; number < payments; number = next++) {
      const payment = paymentOf(number, { payer: 1 + (number % 50), balance: 10n ** 30n });
      await ledger.acquireLease(payment.id, String(number));
      await ledger.find(payment.id);
      const { attempt } = await ledger.claimAll([payment]);
      if (attempt === null) throw new Error("not claimed");
      await ledger.mine(attempt.txNonce, [settled(payment)]);
      await ledger.releaseLease(payment.id, String(number));
    }
  };
  const cpuFrom = process.cpuUsage();
  const from = performance.now();
  await Promise.all(Array.from({ length: concurrency }, run));
  const seconds = (performance.now() - from) / 1_000;
  const { user, system } = process.cpuUsage(cpuFrom);
  if ((await ledger.nextTxNonce(chainId, operator)) !== payments) throw new Error("payments are missing");
  await db.destroy();
  return { rate: payments / seconds, cpu: (user + system) / 1_000 / payments };
}

/** Kysely's own dialect with as little as it needs to work here. */
async function openWithOwnDialect(file: string): Promise<Database> {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  const prepared = new Map<string, ReturnType<SqliteDatabase["prepare"]>>();
  const adapter: SqliteDatabase = {
    close: () => database.close(),
    prepare(sql) {
      const known = prepared.get(sql);
      if (known !== undefined) return known;
      const statement = database.prepare(sql === "begin" ? "begin immediate" : sql);
      const values = (parameters: readonly unknown[]) => [...parameters] as SQLInputValue[];
      const made: ReturnType<SqliteDatabase["prepare"]> = {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...values(parameters)),
        run: (parameters) => statement.run(...values(parameters)),
        iterate: (parameters) => statement.iterate(...values(parameters)),
      };
      prepared.set(sql, made);
      return made;
    },
  };
  const dialect = new SqliteDialect({ database: adapter });
  return new Kysely({ dialect });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
