import { readFileSync } from "node:fs";
import { harnessAccounts } from "../../src/published/accounts.ts";
import { compose } from "../../test/support/composition.ts";
import { grantOperator } from "../../test/support/grant-operator.ts";
import { startPostgres } from "../../test/support/postgres.ts";
import { startServiceProcess } from "../../test/support/service-process.ts";
import { cpuMs } from "./load.ts";

/*
 * Settlements per second with one and with three instances on one Postgres, and with one and with three operator keys:
 *
 *   node scripts/bench/instances.ts [COUNT [CONCURRENCY]]
 *
 * Node, database, instances and clients share this machine, so that more instances cannot be faster than its cores. Of
 * each: the CPU that instances and database have used for a payment, and what the database did for it.
 */

const payments = Number(process.argv[2] ?? 1_000);
/** Payments under way at a time. */
const concurrency = Number(process.argv[3] ?? 100);

const { operator, recoverer, pauser } = harnessAccounts;
const composition = await compose();
for (const { address } of [recoverer, pauser]) await grantOperator(composition.chain, address);
const postgres = await startPostgres();

for (const accounts of [[operator], [operator, recoverer, pauser]]) {
  for (const count of [1, 3]) {
    const url = await postgres.createDatabase();
    const operators = accounts.map(({ privateKey }) => privateKey);
    // As in production: with the short leases of tests, renewing them is a fifth of the database's work.
    const options = { operators, leaseMs: 30_000 };
    const instances = [await startServiceProcess(composition, url, options)];
    while (instances.length < count) instances.push(await startServiceProcess(composition, url, options));

    const settle = async (many: number) => {
      const queue = await Promise.all(Array.from({ length: many }, () => composition.payment()));
      let succeeded = 0;
      const before = await measure();
      const client = async (index: number) => {
        for (let body = queue.pop(); body !== undefined; body = queue.pop()) {
          const answer = await instances[index % count]?.settle(body);
          if (Object(answer?.body).success === true) succeeded++;
        }
      };
      await Promise.all(Array.from({ length: concurrency }, (_, index) => client(index)));
      const after = await measure();
      const used = (key: keyof typeof after) => (after[key] - before[key]) / many;
      return [
        `${succeeded} of ${many} succeeded`,
        `${Math.round(1_000 / used("ms"))} per second`,
        `CPU each ${used("instances").toFixed(2)} ms, of the database ${used("database").toFixed(2)} ms`,
        `${(1 / used("batches")).toFixed(1)} in a transaction`,
        `${used("commits").toFixed(2)} commits each`,
        `${after.deadlocks - before.deadlocks} deadlocks`,
      ].join(", ");
    };
    /** What has been used so far. */
    const measure = async () => {
      const [stats] = await postgres.query(
        url,
        "select xact_commit, deadlocks, (select count(*) from attempts) as batches from pg_stat_database where datname = current_database()",
      );
      return {
        ms: performance.now(),
        instances: instances.reduce((sum, { child }) => sum + (cpuMs(child.pid ?? 0) ?? 0), 0),
        database: cpuOfFamily(postgres.pid),
        commits: Number(stats?.xact_commit),
        deadlocks: Number(stats?.deadlocks),
        batches: Number(stats?.batches),
      };
    };
    await settle(Math.min(payments, 500));
    const result = await settle(payments);
    const plural = (many: number, what: string) => `${many} ${what}${many === 1 ? "" : "s"}`;
    console.log(`${plural(count, "instance")}, ${plural(accounts.length, "operator key")}: ${result}`);
    await Promise.all(instances.map((instance) => instance.stop()));
  }
}
await postgres.stop();
await composition.close();

/** CPU milliseconds of a process and of those it has started and that still run. */
function cpuOfFamily(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    return children.reduce((sum, child) => sum + (cpuMs(Number(child)) ?? 0), cpuMs(pid) ?? 0);
  } catch {
    return Number.NaN;
  }
}
