import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settleTransaction } from "../../src/chain/signing/transaction.ts";
import { channels } from "../../src/channels/channels.ts";
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrate.ts";
import { openDatabase } from "../../src/database/open-database.ts";
import { createHarness } from "../../src/harness/index.ts";
import { createTestLedger, hashOf, paymentOf, settled } from "../../test/support/ledger/test-ledger.ts";
import { startPostgres } from "../../test/support/postgres.ts";

/*
 * The inputs of docs/scale.md that a machine can measure in a few seconds:
 *
 *   node scripts/scale/measure.ts
 *
 * What the ledger costs for a payment, fifty in a transaction, on SQLite and Postgres; and what is asked of a node.
 */

const payments = 2_000;
const perTransaction = 50;
const raw = signedBytes();

const folder = mkdtempSync(join(tmpdir(), "x402-kit-scale-"));
const file = join(folder, "ledger.db");
await measureLedger("SQLite", await openDatabase({ url: `sqlite:${file}` }), async () => ({
  "bytes of the file": statSync(file).size,
}));
rmSync(folder, { recursive: true });

const server = await startPostgres();
const url = await server.createDatabase();
await measureLedger("Postgres", await openDatabase({ url }), async () => {
  const [row] = await server.query(
    url,
    `select pg_database_size(current_database()) as size, pg_current_wal_insert_lsn() - '0/0' as wal,
      (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables) as rows,
      (select xact_commit from pg_stat_database where datname = current_database()) as commits`,
  );
  return {
    "bytes of the database": Number(row?.size),
    "bytes of WAL": Number(row?.wal),
    "rows written": Number(row?.rows),
    commits: Number(row?.commits),
  };
});
await server.stop();
await measureRequests();

/** What a transaction of fifty payments is made of, as hex text: as many bytes as calldata, and its envelope. */
function signedBytes(): `0x${string}` {
  const { data } = settleTransaction(
    Array.from({ length: perTransaction }, (_, index) => {
      const { asset, payer, authorizationNonce, value, validAfter, validBefore, signature, recipient } =
        paymentOf(index, { payer: index });
      return {
        asset,
        authorization: {
          from: payer,
          to: recipient,
          value,
          validAfter,
          validBefore,
          nonce: authorizationNonce,
        },
        signature,
        recipient,
      };
    }),
  );
  console.log(`calldata: ${Math.round((data.length / 2 - 1) / perTransaction)} bytes for each payment`);
  return `0x02${data.slice(2)}${"ab".repeat(110)}`;
}

async function measureLedger(
  name: string,
  db: Database,
  read: () => Promise<Record<string, number>>,
): Promise<void> {
  await migrate(db);
  const ledger = createTestLedger(db, Date.now);
  await ledger.introduce();
  // The first transactions prepare statements.
  await settleMany(0, 200);
  await settle(1_000);
  const before = await read();
  const times = { lease: 0, claim: 0, conclude: 0, deliver: 0 };
  const cpu = process.cpuUsage();
  await settleMany(10_000, payments);
  const { user, system } = process.cpuUsage(cpu);
  if (name === "Postgres") await new Promise((resolve) => setTimeout(resolve, 1_500));
  const after = await read();
  console.log(`\n${name}, for each of ${payments} payments, ${perTransaction} in a transaction:`);
  for (const [what, value] of Object.entries(after)) {
    console.log(`  ${((value - (before[what] ?? 0)) / payments).toFixed(2)} ${what}`);
  }
  console.log(`  ${((user + system) / 1_000 / payments).toFixed(3)} ms of CPU in the service`);
  for (const [what, ms] of Object.entries(times)) {
    console.log(`  ${((ms * perTransaction) / payments).toFixed(1)} ms for ${perTransaction}: ${what}`);
  }
  await db.destroy();

  async function settleMany(from: number, count: number) {
    for (let index = from; index < from + count; index += perTransaction) await settle(index);
  }

  /** A transaction of fifty payments, from their leases to their delivery. */
  async function settle(from: number): Promise<void> {
    const batch = Array.from({ length: perTransaction }, (_, index) =>
      paymentOf(from + index, { payer: from + index, value: 1n }),
    );
    const timed = async <T>(what: keyof typeof times | null, work: () => Promise<T>): Promise<T> => {
      const started = performance.now();
      const result = await work();
      if (what !== null) times[what] += performance.now() - started;
      return result;
    };
    const isCounted = from >= 10_000;
    await timed(isCounted ? "lease" : null, () =>
      Promise.all(batch.map(({ id }) => ledger.acquireLease(id, id))),
    );
    const { attempt } = await timed(isCounted ? "claim" : null, () =>
      ledger.claimAll(batch, async (txNonce) => ({
        raw,
        hash: hashOf(`transaction ${txNonce}`),
        maxFeePerGas: 2n ** 30n,
        maxPriorityFeePerGas: 1_000_000n,
      })),
    );
    await timed(isCounted ? "conclude" : null, () => ledger.mine(attempt?.txNonce ?? -1, batch.map(settled)));
    await timed(isCounted ? "deliver" : null, () =>
      Promise.all(batch.map(({ id }) => ledger.markDelivered(id, id))),
    );
  }
}

/** What 500 settles at once ask of a node that mines at once. */
async function measureRequests(): Promise<void> {
  const count = 500;
  await using harness = await createHarness({ networks: ["base"] });
  const signed = await Promise.all(
    Array.from({ length: count }, () => harness.sign({ network: "base", amount: 1n })),
  );
  const calls = new Map<string, number>();
  let requests = 0;
  channels.rpc.subscribe(({ methods }) => {
    requests++;
    for (const method of methods) calls.set(method, (calls.get(method) ?? 0) + 1);
  });
  await Promise.all(signed.map((payment) => harness.settle(payment)));
  console.log(
    `\nasked of the node for each of ${count} settles at once: ${(requests / count).toFixed(3)} HTTP requests`,
  );
  for (const [method, number] of calls) console.log(`  ${(number / count).toFixed(3)} ${method}`);
}
