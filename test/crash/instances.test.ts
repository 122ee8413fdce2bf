import { afterAll, beforeAll, expect, test } from "vitest";
import { harnessAccounts } from "../../src/harness/accounts.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import { type Composition, compose } from "../support/composition.ts";
import { sharedPostgres } from "../support/databases.ts";
import type { Body } from "../support/service.ts";
import {
  killServiceProcesses,
  type ServiceProcess,
  startServiceProcess,
} from "../support/service-process.ts";

/*
 * Three instances on one Postgres and one operator key. A fifth of the payments is sent twice, at once and to different
 * instances, and instances are killed while they work.
 */

const payments = Number(process.env.INSTANCE_PAYMENTS ?? 150);
const killEveryMs = 3_000;
/** Payments under way at a time. */
const concurrency = 60;
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

let composition: Composition;
beforeAll(async () => {
  composition = await compose();
});
afterAll(async () => {
  killServiceProcesses();
  await composition.close();
});

/** A small generator of pseudo-random numbers in [0, 1), so that a printed seed repeats a run (mulberry32). */
function createRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test(`${payments} payments, duplicates and deaths: none lost, none paid twice (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const random = createRandom(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const url = await (await sharedPostgres()).createDatabase();
  const first = await startServiceProcess(composition, url);
  const instances: ServiceProcess[] = [first];
  for (let more = 0; more < 2; more++) instances.push(await startServiceProcess(composition, url));
  const before = await composition.recipientBalance();

  let kills = 0;
  let working = true;
  const killing = (async () => {
    while (working) {
      await new Promise((resolve) => setTimeout(resolve, killEveryMs));
      if (!working) return;
      const victim = Math.floor(random() * instances.length);
      await instances[victim]?.kill();
      kills++;
      instances[victim] = await startServiceProcess(composition, url);
    }
  })();

  const bodies = await Promise.all(Array.from({ length: payments }, () => composition.payment()));
  const successes = new Map<Body, Set<string>>();
  /** Sends a payment until its outcome is known, to whichever instance answers. */
  const settle = async (body: Body): Promise<void> => {
    for (let attempt = 0; attempt < 200; attempt++) {
      const answer = await pick(instances)
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
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("a payment stayed undecided");
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

  expect(await composition.recipientBalance()).toBe(before + BigInt(payments) * 10_000n);
  for (const hashes of successes.values()) expect(hashes.size).toBe(1);

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
