import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { sharedPostgres } from "../../support/databases.ts";
import { createRandom } from "../../support/random.ts";
import type { Body } from "../../support/service.ts";
import { type ServiceProcess, startServiceProcess } from "../../support/service-process.ts";
import { type Findings, noFindings, tally } from "../../support/tally.ts";
import { useComposition } from "../../support/use-composition.ts";
import { movingWays, signInWay } from "../../support/ways.ts";

/*
 * Three instances on one Postgres and one operator key, and payments in every way. A fifth of the payments is sent twice, at once and to different
 * instances, and instances are killed while they work.
 */

const payments = Number(process.env.INSTANCE_PAYMENTS ?? 150);
const killEveryMs = 3_000;
/** Payments under way at a time. */
const concurrency = 60;
const random = createRandom();

const composition = useComposition();

test(`${payments} payments, duplicates and deaths: none lost, none paid twice (seed ${random.seed})`, {
  timeout: Math.max(600_000, payments * 300),
}, async () => {
  const url = await (await sharedPostgres()).createDatabase();
  const first = await startServiceProcess(composition, url);
  const start = () => startServiceProcess(composition, url);
  const instances: [ServiceProcess, ...ServiceProcess[]] = [first, await start(), await start()];
  const before = await composition.recipientBalance();

  let kills = 0;
  let working = true;
  const killing = (async () => {
    while (working) {
      await sleep(killEveryMs);
      if (!working) return;
      const victim = random.between(0, instances.length - 1);
      await instances[victim]?.kill();
      kills++;
      instances[victim] = await start();
    }
  })();

  const { chain } = composition;
  const bodies: Body[] = await Promise.all(
    Array.from({ length: payments }, async (_, index) => {
      const way = movingWays[index % movingWays.length] ?? movingWays[0];
      return (await signInWay(way, { chain, value: 10_000n })).body;
    }),
  );
  const successes = new Map<Body, Set<string>>();
  /** Sends a payment until its outcome is known, to whichever instance answers. */
  const settle = async (body: Body): Promise<void> => {
    for (;;) {
      const answer = await random
        .pick(instances)
        .settle(body)
        .then(({ status, body: told }) => ({
          status,
          ...(told as { success: boolean; transaction: string; errorMessage?: string }),
        }))
        .catch(() => undefined);
      if (answer?.success) {
        const hashes = successes.get(body) ?? new Set();
        successes.set(body, hashes.add(answer.transaction));
        return;
      }
      // It was settled, and the success went to the other one, or died on the way to it.
      if (answer?.status === 200 && /was settled before/.test(answer.errorMessage ?? "")) return;
      await sleep(100);
    }
  };

  const queue = bodies.flatMap((body, index) => (index % 5 === 0 ? [[body, body]] : [[body]]));
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
        await Promise.all(batch.map(settle));
      }
    }),
  );
  working = false;
  await killing;

  const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
  const paid = ((await composition.recipientBalance()) - before) / 10_000n;
  if (paid > payments) findings.paidTwice.push(`${paid} payments were made`);
  if (paid < payments) findings.lost.push(`${paid} payments were made`);
  for (const hashes of successes.values()) {
    if (hashes.size > 1) findings.wrongAnswers.push([...hashes].join());
  }
  tally(`three instances, ${payments} payments, a fifth of them sent twice, ${kills} kills`, findings);
  expect(findings).toEqual(noFindings);

  const states = await (await sharedPostgres()).query(
    url,
    "select state, count(*)::int as n from settlements group by state",
  );
  expect(states).toEqual([{ state: "settled", n: payments }]);
  const [{ next }] = (await (
    await sharedPostgres()
  ).query(url, "select next_tx_nonce::int as next from operator_nonces")) as [{ next: number }];
  const mined = await composition.chain.node.request(
    "eth_getTransactionCount",
    harnessAccounts.operator.address,
    "latest",
  );
  expect(Number(mined as Hex)).toBe(next);
  console.log(`${payments} payments, ${kills} kills, ${next} transactions`);
  for (const instance of instances) await instance.stop();
});
