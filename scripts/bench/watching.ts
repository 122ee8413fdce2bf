import { fileURLToPath } from "node:url";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";
import { type Load, load, median } from "./load.ts";
import { signBodies, startDescribed, type Up } from "./up.ts";

/**
 * The cost of keeping payments for the studio while it is not open. Two services, with and without the studio, take
 * the same verifies and settles in many short turns, so that other load on the machine affects both alike. The cost is
 * the median difference between neighbouring turns of the two.
 */
const rounds = { verify: 150, settle: 16 } as const;
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

async function compare(): Promise<void> {
  const sides = [await start("without"), await start("with")];
  for (const operation of ["verify", "settle"] as const) {
    const results = new Map(sides.map((side) => [side, [] as Load[]]));
    for (let round = -warmUps[operation]; round < rounds[operation]; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const result = await run(side, operation);
        if (round >= 0) results.get(side)?.push(result);
      }
    }
    const [without = [], watched = []] = sides.map((side) => {
      const all = results.get(side) ?? [];
      const cpus = all.map((result) => result.cpu ?? Number.NaN);
      const perSecond = median(all.map((result) => result.perSecond));
      console.log(
        `${operation} ${side.name} the studio: ${perSecond.toFixed(0)}/s, service CPU ${median(cpus).toFixed(3)} ms each`,
      );
      return cpus;
    });
    const added = watched.map((cpu, round) => cpu / (without[round] ?? Number.NaN) - 1);
    console.log(`${operation}: the studio adds ${(median(added) * 100).toFixed(1)} % of CPU`);
  }
  for (const { service } of sides) await service.stop();
}
