import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { harnessDescriptionSchema } from "../../src/harness/control/description.ts";
import { load } from "./load.ts";
import { signBodies } from "./up.ts";
import type { Turn, TurnCost } from "./watched-service.ts";

/**
 * The cost of keeping payments for the studio while it is not open. One service takes verifies and settles in turns, with
 * everything that listens to its channels and without: two processes of the same program differ by some percent for as long as
 * they run, which is more than the cost. Turns differ, too, so the mean has an error, which is given.
 *
 * A profile of some more turns says which part of the main thread's work is for those who listen. What that leaves out is
 * what their memory costs later: collections, and caches.
 */
const plans = {
  verify: { rounds: 40, warmUps: 4, profiled: 3, requests: 3_000, connections: 32, expect: '"isValid":true' },
  settle: {
    rounds: 20,
    warmUps: 3,
    profiled: 3,
    requests: 1_000,
    connections: 200,
    expect: '"success":true',
  },
} as const;

/** So many times as many turns may be asked for, as its argument: a smaller error. */
const more = Number(process.argv[2] ?? 1);

/** So many different verifies are made, one after the other, more than are kept: each is a new one where it is kept. */
const differentVerifies = 14_000;

const child = fork(fileURLToPath(new URL("./watched-service.ts", import.meta.url)));
const [started] = await once(child, "message");
const { facilitator, organization, networks } = harnessDescriptionSchema.parse(started);
for (const operation of ["verify", "settle"] as const) await compare(operation);
child.disconnect();
await once(child, "exit");

/** Begins a turn; gives what the one before cost. */
async function begin(turn: Turn): Promise<TurnCost> {
  child.send(turn);
  const [cost] = await once(child, "message");
  return cost;
}

async function compare(operation: "verify" | "settle"): Promise<void> {
  const { warmUps, profiled, requests, connections, expect } = plans[operation];
  const rounds = more * plans[operation].rounds;
  const signed = operation === "verify" ? await signBodies({ networks }, differentVerifies, 1) : [];
  /** How many of them were taken, by whether they were kept. */
  const taken = { heard: 0, silent: 0 };

  async function bodiesFor({ areHeard }: Turn): Promise<string[]> {
    if (operation === "settle") return await signBodies({ networks }, requests, 1);
    const kind = areHeard ? "heard" : "silent";
    const from = taken[kind];
    taken[kind] += requests;
    return Array.from({ length: requests }, (_, index) => signed[(from + index) % signed.length] ?? "");
  }

  /** What a request cost: microseconds of CPU, and of collections. */
  async function measure(turn: Turn): Promise<TurnCost & { cpu: number }> {
    const bodies = await bodiesFor(turn);
    await begin(turn);
    const { good, cpu } = await load({
      url: `${facilitator.url}/${operation}`,
      headers: { authorization: organization.apiKey },
      ...{ bodies, connections, expect },
      pid: child.pid ?? 0,
    });
    const { collections, publishing } = await begin({ ...turn, isProfiled: false });
    if (good < requests) throw new Error(`${requests - good} of ${requests} were not good`);
    const microseconds = 1_000 * (cpu ?? Number.NaN);
    return { cpu: microseconds, collections: (1_000 * collections) / requests, publishing };
  }

  const silent: TurnCost[] = [];
  const heard: TurnCost[] = [];
  const differences: number[] = [];
  let [least, most] = [0, 0];
  for (let round = -warmUps; round < rounds; round++) {
    const costs = new Map<boolean, TurnCost & { cpu: number }>();
    for (const areHeard of round % 2 === 0 ? [false, true] : [true, false]) {
      costs.set(areHeard, await measure({ areHeard, isProfiled: false }));
    }
    const [without, watched] = [costs.get(false), costs.get(true)];
    if (round < 0 || without === undefined || watched === undefined) continue;
    silent.push(without);
    heard.push(watched);
    differences.push(watched.cpu - without.cpu);
    least += without.cpu / rounds;
    most += watched.cpu / rounds;
  }
  const publishing: number[] = [];
  for (let turn = 0; turn < profiled; turn++) {
    publishing.push((await measure({ areHeard: true, isProfiled: true })).publishing ?? Number.NaN);
  }
  const collectionsOf = (costs: readonly TurnCost[]) => mean(costs.map(({ collections }) => collections));
  console.log(
    [
      `${operation}: service CPU ${least.toFixed(1)} µs each without the studio, ${most.toFixed(1)} µs with it`,
      `${percent(most / least - 1)}, with a standard error of ${percent(errorOfMean(differences) / least)}`,
      `collections ${collectionsOf(silent).toFixed(1)} and ${collectionsOf(heard).toFixed(1)} µs`,
      `by the profile ${percent(mean(publishing))} of the main thread's work is for it`,
    ].join("; "),
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function errorOfMean(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)) / values.length);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
