import { harnessAccounts } from "../../src/published/accounts.ts";
import { compose } from "../../test/support/composition.ts";
import { grantOperator } from "../../test/support/grant-operator.ts";
import { startPostgres } from "../../test/support/postgres.ts";
import { startServiceProcess } from "../../test/support/service-process.ts";

/*
 * Settlements per second with one and with three instances on one Postgres, and with one and with three operator keys.
 * Node, database, instances and clients share this machine, so that more instances cannot be faster than its cores.
 */

const payments = 400;
/** Payments under way at a time. */
const concurrency = 100;

const { operator, recoverer, pauser } = harnessAccounts;
const composition = await compose();
for (const { address } of [recoverer, pauser]) await grantOperator(composition.chain, address);
const postgres = await startPostgres();

for (const accounts of [[operator], [operator, recoverer, pauser]]) {
  for (const count of [1, 3]) {
    const url = await postgres.createDatabase();
    const operators = accounts.map(({ privateKey }) => privateKey);
    const instances = [await startServiceProcess(composition, url, { operators })];
    while (instances.length < count)
      instances.push(await startServiceProcess(composition, url, { operators }));

    const settle = async (many: number) => {
      const queue = await Promise.all(Array.from({ length: many }, () => composition.payment()));
      let succeeded = 0;
      const from = performance.now();
      const client = async (index: number) => {
        for (let body = queue.pop(); body !== undefined; body = queue.pop()) {
          const answer = await instances[index % count]?.settle(body);
          if (Object(answer?.body).success === true) succeeded++;
        }
      };
      await Promise.all(Array.from({ length: concurrency }, (_, index) => client(index)));
      return { seconds: (performance.now() - from) / 1_000, succeeded };
    };
    await settle(60);
    const { seconds, succeeded } = await settle(payments);
    console.log(
      `${count} instance${count === 1 ? "" : "s"}, ${accounts.length} operator key${accounts.length === 1 ? "" : "s"}: ${succeeded} of ${payments} succeeded, ${Math.round(succeeded / seconds)} per second`,
    );
    await Promise.all(instances.map((instance) => instance.stop()));
  }
}
await postgres.stop();
await composition.close();
