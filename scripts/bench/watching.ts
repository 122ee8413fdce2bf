import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type HarnessDescription, harnessDescriptionSchema } from "../../src/harness/control/description.ts";
import { load } from "./load.ts";
import { signBodies } from "./up.ts";
import type { Turn, TurnCost } from "./watched-service.ts";

/**
 * The cost of keeping payments for the studio while it is not open. One service takes verifies and settles in turns, with
 * everything that listens to its channels and without: two processes of the same program differ by some percent for as long as
 * they run, which is more than the cost. Turns differ, too, so the mean has an error, which is given. The cost itself differs
 * from process to process, with how Node has compiled it: several processes, as many as the argument says, tell it better.
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

/** So many services are started, one after the other. */
const services = Number(process.argv[2] ?? 1);

/** So many different verifies are made, one after the other, more than are kept: each is a new one where it is kept. */
const differentVerifies = 14_000;

type Operation = keyof typeof plans;

/** Microseconds for each request. */
type Measured = TurnCost & {
  /** From one answer to the next: the inverse of the throughput. */
  time: number;
  cpu: number;
};

/** By how much what is heard exceeds what is silent, as a part of the latter. */
type Excess = Record<"time" | "cpu" | "otherThreads", number>;

const excesses: Record<Operation, Excess[]> = { verify: [], settle: [] };
for (let count = 0; count < services; count++) {
  const service = await startService();
  for (const operation of ["verify", "settle"] as const) {
    excesses[operation].push(await compare(service, operation));
  }
  await service.close();
}
if (services > 1) for (const operation of ["verify", "settle"] as const) summarize(operation);

type Service = {
  description: HarnessDescription;
  pid: number;
  /** Begins a turn; gives what the one before cost. */
  begin(turn: Turn): Promise<TurnCost>;
  close(): Promise<void>;
};

async function startService(): Promise<Service> {
  const child = fork(fileURLToPath(new URL("./watched-service.ts", import.meta.url)));
  const [started] = await once(child, "message");
  return {
    description: harnessDescriptionSchema.parse(started),
    pid: child.pid ?? 0,
    async begin(turn) {
      child.send(turn);
      const [cost] = await once(child, "message");
      return cost;
    },
    async close() {
      child.disconnect();
      await once(child, "exit");
    },
  };
}

async function compare({ description, pid, begin }: Service, operation: Operation): Promise<Excess> {
  const { facilitator, organization, networks } = description;
  const { rounds, warmUps, profiled, requests, connections, expect } = plans[operation];
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
      ...{ bodies, connections, expect, pid },
    });
    const { collections, otherThreads, publishing } = await begin({ ...turn, isProfiled: false });
    if (good < requests) throw new Error(`${requests - good} of ${requests} were not good`);
    return {
      time: 1e6 / perSecond,
      cpu: 1_000 * (cpu ?? Number.NaN),
      collections: (1_000 * collections) / requests,
      otherThreads: (1_000 * otherThreads) / requests,
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

  const meanOf = (turns: readonly Measured[], what: keyof Measured) =>
    mean(turns.map(({ [what]: value = Number.NaN }) => value));
  const excessOf = (what: keyof Excess) => meanOf(heard, what) / meanOf(silent, what) - 1;
  const describe = (what: keyof Excess) => {
    const differences = heard.map((each, round) => each[what] - (silent[round]?.[what] ?? Number.NaN));
    const error = errorOf(differences) / meanOf(silent, what);
    const [without, beside] = [meanOf(silent, what), meanOf(heard, what)].map((value) => value.toFixed(1));
    return `${without} and ${beside} µs each, ${percent(excessOf(what))} more with an error of ${percent(error)}`;
  };
  console.log(
    [
      `${operation}, without the studio and with it: ${describe("time")}`,
      `CPU of the service ${describe("cpu")}`,
      `of its threads besides the main one ${describe("otherThreads")}`,
      `collections ${meanOf(silent, "collections").toFixed(1)} and ${meanOf(heard, "collections").toFixed(1)} µs`,
      `by the profile ${percent(meanOf(profiles, "publishing"))} of the main thread's work is for it`,
    ].join("; "),
  );
  return { time: excessOf("time"), cpu: excessOf("cpu"), otherThreads: excessOf("otherThreads") };
}

function summarize(operation: Operation): void {
  const of = (what: keyof Excess) => {
    const each = excesses[operation].map(({ [what]: excess }) => excess);
    return `${percent(mean(each))} more with an error of ${percent(errorOf(each))} (${each.map(percent).join(", ")})`;
  };
  console.log(
    `${operation}, ${services} services: time from answer to answer ${of("time")}; CPU ${of("cpu")}`,
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The standard error of their mean. */
function errorOf(values: readonly number[]): number {
  const middle = mean(values);
  const squares = values.map((value) => (value - middle) ** 2);
  return Math.sqrt(mean(squares) / Math.max(1, values.length - 1));
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
