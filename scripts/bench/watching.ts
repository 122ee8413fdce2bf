import { fileURLToPath } from "node:url";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";
import { type Load, load, median } from "./load.ts";
import { signBodies, startDescribed, type Up } from "./up.ts";

/**
 * The cost of keeping payments for the studio while it is not open. Two services, with and without the studio, take
 * the same verifies and settles in many short turns, so that other load on the machine affects both alike. The cost is
 * the median difference between neighbouring turns of the two. Two processes of the same program differ by some percent
 * for as long as they run: there are several pairs, one after the other, and the cost is the mean of theirs.
 */
const pairs = 4;
const rounds = { verify: 50, settle: 6 } as const;
/** Before them, until code is compiled and the store has begun to forget. */
const warmUps = { verify: 40, settle: 1 } as const;
const connections = 32;
const requests = { verify: 200, settle: 250 } as const;

const [role] = process.argv.slice(2);
if (role === undefined) await compare();
else await serve(role === "with");

/** In a process of its own: the harness until it is told to end. */
async function serve(studio: boolean): Promise<void> {
  const harness = await startHarness({
    networks: ["base"],
    facilitatorContracts: resolveFacilitatorContracts(),
    host: "127.0.0.1",
    port: 0,
    studio,
    logger: createLogger("warn"),
  });
  console.log(JSON.stringify(harness.description));
  process.once("SIGINT", () => void harness.close());
}

type Side = { name: string; service: Up; verifies: string[] };

async function start(name: string): Promise<Side> {
  const service = await startDescribed([fileURLToPath(import.meta.url), name]);
  return { name, service, verifies: await signBodies(service.description, 200, 1) };
}

async function run({ service, verifies }: Side, operation: "verify" | "settle"): Promise<Load> {
  const count = requests[operation];
  const bodies =
    operation === "settle"
      ? await signBodies(service.description, count, 1)
      : Array.from({ length: count }, (_, index) => verifies[index % verifies.length] ?? "");
  const result = await load({
    url: `${service.description.facilitator.url}/${operation}`,
    headers: { authorization: service.description.organization.apiKey },
    bodies,
    connections,
    expect: operation === "verify" ? '"isValid":true' : '"success":true',
    pid: service.pid,
  });
  if (result.good < count) throw new Error(`${count - result.good} of ${count} were not good`);
  return result;
}

/** The CPU of each turn of both services, in milliseconds per request. */
async function measure(
  operation: "verify" | "settle",
  [without, watched]: readonly [Side, Side],
): Promise<{ without: number[]; watched: number[] }> {
  const cpus = { without: [] as number[], watched: [] as number[] };
  for (let round = -warmUps[operation]; round < rounds[operation]; round++) {
    const order = [
      [without, cpus.without],
      [watched, cpus.watched],
    ] as const;
    for (const [side, list] of round % 2 === 0 ? order : order.toReversed()) {
      const { cpu = Number.NaN } = await run(side, operation);
      if (round >= 0) list.push(cpu);
    }
  }
  return cpus;
}

async function compare(): Promise<void> {
  const added = { verify: [] as number[], settle: [] as number[] };
  for (let pair = 1; pair <= pairs; pair++) {
    const sides = [await start("without"), await start("with")] as const;
    for (const operation of ["verify", "settle"] as const) {
      const { without, watched } = await measure(operation, sides);
      const more = median(watched.map((cpu, round) => cpu / (without[round] ?? Number.NaN) - 1));
      added[operation].push(more);
      console.log(
        `pair ${pair}, ${operation}: service CPU ${median(without).toFixed(3)} ms each without the studio, ${median(watched).toFixed(3)} ms with it: ${percent(more)}`,
      );
    }
    for (const { service } of sides) await service.stop();
  }
  for (const [operation, all] of Object.entries(added)) {
    const mean = all.reduce((sum, more) => sum + more, 0) / all.length;
    console.log(`${operation}: the studio adds ${percent(mean)} of CPU`);
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
