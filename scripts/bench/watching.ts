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

  async function measure(turn: Turn): Promise<Measured> {
    const bodies = await bodiesFor(turn);
    await begin(turn);
    const { good, cpu, perSecond } = await load({
      url: `${facilitator.url}/${operation}`,
      headers: { authorization: organization.apiKey },
      ...{ bodies, connections, expect },
      pid: child.pid ?? 0,
    });
    const { collections, publishing } = await begin({ ...turn, isProfiled: false });
    if (good < requests) throw new Error(`${requests - good} of ${requests} were not good`);
    return {
      time: 1e6 / perSecond,
      cpu: 1_000 * (cpu ?? Number.NaN),
      collections: (1_000 * collections) / requests,
      publishing,
    };
  }

  const silent: Measured[] = [];
  const heard: Measured[] = [];
  for (let round = -warmUps; round < rounds; round++) {
    for (const areHeard of round % 2 === 0 ? [false, true] : [true, false]) {
      const measured = await measure({ areHeard, isProfiled: false });
      if (round >= 0) (areHeard ? heard : silent).push(measured);
    }
  }
  const profiles: Measured[] = [];
  for (let turn = 0; turn < profiled; turn++)
    profiles.push(await measure({ areHeard: true, isProfiled: true }));
  console.log(
    [
      `${operation}, without the studio and with it: ${compared("time", silent, heard)}`,
      `CPU of the service ${compared("cpu", silent, heard)}`,
      `collections ${mean(silent, "collections").toFixed(1)} and ${mean(heard, "collections").toFixed(1)} µs`,
      `by the profile ${percent(mean(profiles, "publishing"))} of the main thread's work is for it`,
    ].join("; "),
  );
}

/** Microseconds for each request. */
type Measured = TurnCost & {
  /** From one answer to the next: the inverse of the throughput. */
  time: number;
  cpu: number;
};

/** Two means, their difference, and its standard error. */
function compared(what: "time" | "cpu", silent: readonly Measured[], heard: readonly Measured[]): string {
  const [least, most] = [mean(silent, what), mean(heard, what)];
  const squares = heard.map(
    (each, round) => (each[what] - (silent[round]?.[what] ?? 0) - (most - least)) ** 2,
  );
  const error = Math.sqrt(squares.reduce((sum, square) => sum + square, 0)) / squares.length;
  return `${least.toFixed(1)} and ${most.toFixed(1)} µs each, ${percent(most / least - 1)} more with an error of ${percent(error / least)}`;
}

function mean(measured: readonly Measured[], what: keyof Measured): number {
  return measured.reduce((sum, { [what]: value = Number.NaN }) => sum + value, 0) / measured.length;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
