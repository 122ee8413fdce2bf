import { harnessAccounts } from "../../src/payer/accounts.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import { compose } from "../../test/support/composition.ts";
import { grantOperator } from "../../test/support/grant-operator.ts";
import { startPostgres } from "../../test/support/postgres.ts";
import { descendantsOf } from "../../test/support/processes.ts";
import { type ServiceProcess, startServiceProcess } from "../../test/support/service-process.ts";
import { cpuMs } from "./load.ts";
import { describeMachine, markdownTable } from "./markdown.ts";

/*
 * Settlements per second with one and with three instances on one Postgres, and with one and with three operator keys:
 *
 *   node scripts/bench/instances.ts [COUNT [CONCURRENCY]]
 *
 * Node, database, instances and clients share this machine, so more instances cannot be faster than its cores. Each row
 * also has the CPU that instances and database used per payment, and the database's work for it. A row is printed as
 * soon as it is measured, and takes no longer than {@link longestMs} for its payments.
 */

/** COUNT payments for each row, CONCURRENCY of them at a time. */
const [payments = 1_000, concurrency = 100] = process.argv.slice(2).map(Number);
if (![payments, concurrency].every((size) => Number.isSafeInteger(size) && size > 0)) {
  console.error("Usage: node scripts/bench/instances.ts [COUNT [CONCURRENCY]], whole numbers from 1");
  process.exit(1);
}

/** Payments that have not started by then are left out, so four rows take at most three minutes even on a busy machine. */
const longestMs = 20_000;

const { operator, recoverer, pauser } = harnessAccounts;

console.log(`${describeMachine()}\n`);
console.error(
  `Four rows of ${payments} payments each, ${concurrency} at a time; the first in about half a minute.`,
);
await using resources = new AsyncDisposableStack();
const composition = resources.adopt(await compose(), (one) => one.close());
for (const { address } of [recoverer, pauser]) await grantOperator(composition.chain, address);
const postgres = resources.adopt(await startPostgres(), (one) => one.stop());

let isFirst = true;
for (const accounts of [[operator], [operator, recoverer, pauser]]) {
  for (const count of [1, 3]) {
    const row = await measureRow(count, accounts);
    const lines = markdownTable([row]).split("\n");
    console.log((isFirst ? lines : lines.slice(-1)).join("\n"));
    isFirst = false;
  }
}

/** Measures one row: this many instances, each with these operator keys. */
async function measureRow(count: number, accounts: readonly { privateKey: Hex }[]) {
  const url = await postgres.createDatabase();
  const operators = accounts.map(({ privateKey }) => privateKey);
  // As in production. With the short leases of tests, renewing them is a fifth of the database's work, and with their
  // short blocks each instance compares the ledger with the chain ten times as often.
  const options = { operators, leaseMs: 30_000, blockTimeMs: composition.chain.network.blockTimeMs };
  await using running = new AsyncDisposableStack();
  const instances: ServiceProcess[] = [];
  while (instances.length < count) {
    const instance = await startServiceProcess(composition, url, options);
    instances.push(running.adopt(instance, (one) => one.stop()));
  }

  /** Settles payments, taking turns between the instances. */
  const settle = async (many: number) => {
    const queue = await Promise.all(Array.from({ length: many }, () => composition.payment()));
    let succeeded = 0;
    const before = await measure();
    const client = async (index: number) => {
      while (performance.now() - before.ms < longestMs) {
        const body = queue.pop();
        if (body === undefined) return;
        const answer = await instances[index % count]?.settle(body);
        if (Object(answer?.body).success === true) succeeded++;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, (_, index) => client(index)));
    const after = await measure();
    const tried = many - queue.length;
    const used = (key: keyof typeof after) => (after[key] - before[key]) / tried;
    return {
      instances: count,
      "operator keys": accounts.length,
      succeeded: `${succeeded} of ${tried}`,
      "per second": Math.round(1_000 / used("ms")),
      "instances' CPU ms each": used("instances").toFixed(2),
      "database's CPU ms each": used("database").toFixed(2),
      "in a transaction": (1 / used("batches")).toFixed(1),
      "commits each": used("commits").toFixed(2),
      deadlocks: after.deadlocks - before.deadlocks,
    };
  };
  /** The usage so far. */
  const measure = async () => {
    const [stats] = await postgres.query(
      url,
      "select xact_commit, deadlocks, (select count(*) from attempts) as batches from pg_stat_database where datname = current_database()",
    );
    return {
      ms: performance.now(),
      instances: instances.reduce((sum, { child }) => sum + (cpuMs(child.pid ?? 0) ?? 0), 0),
      database: [postgres.pid, ...descendantsOf(postgres.pid)].reduce(
        (sum, pid) => sum + (cpuMs(pid) ?? 0),
        0,
      ),
      commits: Number(stats?.xact_commit),
      deadlocks: Number(stats?.deadlocks),
      batches: Number(stats?.batches),
    };
  };
  // A warm-up of the same size for each instance: a cold one takes twice the CPU.
  await settle(Math.min(payments, 500) * count);
  // Awaited here, since the instances end when this returns.
  return await settle(payments);
}
