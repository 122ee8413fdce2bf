import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { type Kysely, sql } from "kysely";
import type { Database } from "../../src/ledger/database/database.ts";
import { migrate, openDatabase } from "../../src/ledger/database/open-database.ts";
import type { SettlementFilter } from "../../src/ledger/ledger.ts";
import type { LedgerTables } from "../../src/ledger/rows.ts";
import {
  addressOf,
  chainId,
  createTestLedger,
  hashOf,
  operator,
  paymentOf,
  settled,
} from "../../test/support/ledger/test-ledger.ts";
import { startPostgres } from "../../test/support/postgres.ts";
import { median } from "./load.ts";
import { markdownTable, ms, type Report } from "./markdown.ts";

/** The number of settlements in the ledger for the first figures. */
const few = 1_000;

const filters: Readonly<Record<string, SettlementFilter>> = {
  "newest of an organization": { organizationId: "org_0" },
  "state=submitted": { organizationId: "org_0", state: "submitted" },
  "state=failed": { organizationId: "org_0", state: "failed" },
  "state=recovered, of which there is none": { organizationId: "org_0", state: "recovered" },
  "a payer with three": { organizationId: "org_0", payer: addressOf(0xfffffffff) },
  "a payer with a thousandth": { organizationId: "org_0", payer: addressOf(3) },
  "network=polygon, a hundred": { organizationId: "org_0", network: "polygon" },
  "payer, network and state, none": {
    organizationId: "org_0",
    payer: addressOf(3),
    network: "base",
    state: "recovered",
  },
  "a payer with a thousandth, of all organizations": { payer: addressOf(3) },
  "a stranger's payer, of all organizations": { payer: addressOf(0xeeeeeeeee) },
};

/**
 * The cost of the ledger's work with few settlements and with `many`, on SQLite and on Postgres: the median and the
 * longest time of each step, and how long it blocked this process.
 */
export async function measureLedgers(report: Report, many: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "x402-kit-growth-"));
  const file = join(folder, "ledger.db");
  await measure(report, "SQLite", await openDatabase({ url: `sqlite:${file}` }), many, () => sizeOf(file));
  rmSync(folder, { recursive: true });
  const server = await startPostgres();
  const url = await server.createDatabase();
  await measure(report, "Postgres", await openDatabase({ url }), many, async () => {
    const [row] = await server.query(url, "select pg_database_size(current_database()) as size");
    return Number(row?.size);
  });
  await server.stop();
}

/** The database's size in bytes, after all writes are in its main file. */
export function sizeOf(file: string): number {
  const other = new DatabaseSync(file);
  other.exec("pragma wal_checkpoint(truncate)");
  other.close();
  return statSync(file).size;
}

type Time = { median: number; longest: number; blocked: number };

async function measure(
  report: Report,
  name: "SQLite" | "Postgres",
  opened: Database,
  many: number,
  sizeOf: () => number | Promise<number>,
): Promise<void> {
  await migrate(opened);
  const db = opened.$extendTables<LedgerTables>();
  const ledger = createTestLedger(opened, Date.now);
  await ledger.introduce(10_000_000);
  const steps = new Map<string, Time[]>();
  const bytes: number[] = [];
  for (const size of [few, many]) {
    await fill(name, db, size);
    bytes.push(Math.round((await sizeOf()) / size));
    const time = async (title: string, rounds: number, work: () => Promise<unknown>) => {
      steps.set(title, [...(steps.get(title) ?? []), await timeOf(rounds, work)]);
    };

    let number = size * 10;
    await time("find one", 200, () => ledger.find(paymentOf(7).id));
    await time("lease, claim, conclude, deliver", 100, async () => {
      const payment = paymentOf(number++, {
        payer: number % 1_000,
        balance: 10n ** 30n,
        balanceBlock: 10_000_000n,
        organizationId: "org_0",
      });
      await ledger.acquireLease(payment.id, "bench");
      const { attempt } = await ledger.claimAll([payment]);
      await ledger.mine(attempt?.txNonce ?? -1, [settled(payment)], 10_000_000n);
      await ledger.markDelivered(payment.id, "bench");
    });
    await time("gas spending of an organization", 50, () => ledger.gasSpending("org_0", "base"));
    await time("unfinished settlements", 50, () => ledger.unfinished());
    await time("open attempts", 50, () => ledger.openAttempts(chainId, operator));
    await time("failures due for a look", 50, () => ledger.takeDueFailures(chainId, 10, Date.now() + 1e9));
    await time("open failures", 10, () => ledger.openFailures(chainId, 100, null));
    for (const [title, filter] of Object.entries(filters)) {
      await time(`list: ${title}`, 5, () => ledger.list(filter, { limit: 50 }));
    }
  }
  const columns = ([ofFew, ofMany]: readonly Time[]) => ({
    [`ms with ${few.toLocaleString("en")}`]: ms(ofFew?.median ?? 0),
    [`with ${many.toLocaleString("en")}`]: ms(ofMany?.median ?? 0),
    "longest with few": ms(ofFew?.longest ?? 0),
    "longest with many": ms(ofMany?.longest ?? 0),
    "process blocked": ms(ofMany?.blocked ?? 0),
  });
  report.add(
    `### ${many.toLocaleString("en")} settlements in the ledger, ${name}\n\n${bytes[1]} bytes each.\n\n${markdownTable(
      [...steps].map(([step, times]) => ({ step, ...columns(times) })),
    )}`,
  );
  await db.destroy();
}

async function timeOf(rounds: number, work: () => Promise<unknown>): Promise<Time> {
  await work();
  const times: number[] = [];
  const blocked = monitorEventLoopDelay({ resolution: 1 });
  await new Promise((resolve) => setTimeout(resolve, 5));
  blocked.enable();
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    await work();
    times.push(performance.now() - from);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  blocked.disable();
  return { median: median(times), longest: Math.max(...times), blocked: blocked.max / 1e6 };
}

/** Adds old settlements, generated inside the database, up to this number. */
async function fill(name: "SQLite" | "Postgres", db: Kysely<LedgerTables>, target: number): Promise<void> {
  const { have } = await db
    .selectFrom("settlements")
    .select(({ fn }) => fn.countAll<number>().as("have"))
    .executeTakeFirstOrThrow();
  const numbers =
    name === "SQLite"
      ? sql`with recursive number(n) as (select ${sql.lit(Number(have))} union all select n + 1 from number where n < ${sql.lit(target - 1)})`
      : sql`with number(n) as (select generate_series(${sql.lit(Number(have))}, ${sql.lit(target - 1)}))`;
  const random = (bytes: number) =>
    name === "SQLite"
      ? sql`lower(hex(randomblob(${sql.lit(bytes)})))`
      : sql`substr(md5(random()::text) || md5(random()::text), 1, ${sql.lit(bytes * 2)})`;
  const start = Date.now() - 10_000_000;
  const payerOf = (offset: number) =>
    name === "SQLite"
      ? sql`'0x' || printf('%040x', ${sql.lit(offset)} + n % 1000)`
      : sql`'0x' || lpad(to_hex(${sql.lit(offset)} + n % 1000), 40, '0')`;
  // In one statement it would be a transaction longer than the limits allow.
  await db.transaction().execute(async (transaction) => {
    await sql`
      insert into settlements (id, organization_id, network, chain_id, asset, payer, nonce, digest, amount,
        valid_first, valid_last, signature, recipient, state, operator, tx_nonce, transaction_hash, block_number,
        block_hash, failure, claimed_block, claimed_at, concluded_at, delivered_at)
      ${numbers}
      select '0x' || ${random(32)},
        case when n % 10 = 9 then 'org_1' else 'org_0' end,
        case when n % ${sql.lit(Math.ceil(target / 100))} = 0 then 'polygon' else 'base' end,
        ${sql.lit(chainId)}, ${sql.lit("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913")},
        case when n in (1, 2, 3) then ${sql.lit(addressOf(0xfffffffff))} else ${payerOf(0)} end,
        '0x' || ${random(32)}, '0x' || ${random(32)}, '10000', '0', '1900000000', '0x' || ${random(32)} || ${random(33)},
        ${sql.lit(addressOf(0xbeef))}, case when n % 200 = 7 then 'failed' else 'settled' end,
        ${sql.lit(operator.toLowerCase())}, n / 50, '0x' || ${random(32)}, n / 50, ${sql.lit(hashOf("block"))},
        case when n % 200 = 7 then 'the transaction was reverted' end, n / 50, ${sql.lit(start)} + n * 5, ${sql.lit(start)} + n * 5 + 2000,
        ${sql.lit(start)} + n * 5 + 2100
      from number`.execute(transaction);
    // The transactions that settled them, without their real contents.
    await sql`
      insert into attempts (hash, chain_id, operator, tx_nonce, kind, raw, max_fee_per_gas, max_priority_fee_per_gas, state,
        created_at)
      ${numbers}
      select '0x' || ${random(32)}, ${sql.lit(chainId)}, ${sql.lit(operator.toLowerCase())}, n / 50, 'settle', '0x', '1', '1',
        'mined', ${sql.lit(start)} + n * 5
      from number where n % 50 = 0`.execute(transaction);
  });
  if (name === "Postgres") await sql`analyze settlements, attempts`.execute(db);
}
