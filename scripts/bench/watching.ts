import { fork } from "node:child_process";
import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { channels } from "../../src/channels/channels.ts";
import { harnessDescriptionSchema } from "../../src/harness/control/description.ts";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";
import { load, median } from "./load.ts";
import { signBodies } from "./up.ts";

/**
 * The cost of keeping payments for the studio while it is not open. One service takes the same verifies and settles in
 * turns, with everything that listens to its channels and without. Two processes of the same program differ by some
 * percent for as long as they run, which is more than the cost. Each payment is a new one, so that the store forgets as many as
 * it takes in. What it leaves out: collections of what is kept that fall into a turn without.
 */
const rounds = { verify: 60, settle: 30 } as const;
/** Before them, until code is compiled and the store has begun to forget. */
const warmUps = { verify: 12, settle: 6 } as const;
const connections = 32;
const requests = { verify: 1_000, settle: 500 } as const;

if (process.argv[2] === "serve") await serve();
else await compare();

/** In a process of its own: the harness, until it is told to end. Its channels are heard or not, as the messages say. */
async function serve(): Promise<void> {
  const silenced = Object.values(channels).map(({ name }) => silence(name));
  const harness = await startHarness({
    networks: ["base"],
    facilitatorContracts: resolveFacilitatorContracts(),
    host: "127.0.0.1",
    port: 0,
    studio: true,
    logger: createLogger("warn"),
  });
  process.send?.(harness.description);
  process.on("message", (areHeard: boolean) => {
    for (const hear of silenced) hear(areHeard);
    process.send?.(areHeard);
  });
  process.once("disconnect", () => void harness.close());
}

/** Makes a channel silent by what is called: subscriptions that come and go would have Node compile its users anew. */
function silence(name: string): (areHeard: boolean) => void {
  const watched = channel(name);
  const { subscribe } = watched;
  let isSubscribed = false;
  let isHeard = true;
  watched.subscribe = (listener) => {
    isSubscribed = true;
    delete (watched as Partial<typeof watched>).subscribe;
    subscribe.call(watched, listener);
  };
  Object.defineProperty(watched, "hasSubscribers", { get: () => isSubscribed && isHeard });
  return (areHeard) => {
    isHeard = areHeard;
  };
}

async function compare(): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ["serve"]);
  const [started] = await once(child, "message");
  const { facilitator, organization, networks } = harnessDescriptionSchema.parse(started);

  /** The CPU of one turn, in milliseconds per request. */
  const turn = async (operation: "verify" | "settle", areHeard: boolean): Promise<number> => {
    child.send(areHeard);
    await once(child, "message");
    const count = requests[operation];
    const { good, cpu } = await load({
      url: `${facilitator.url}/${operation}`,
      headers: { authorization: organization.apiKey },
      bodies: await signBodies({ networks }, count, 1),
      connections,
      expect: operation === "verify" ? '"isValid":true' : '"success":true',
      pid: child.pid ?? 0,
    });
    if (good < count) throw new Error(`${count - good} of ${count} were not good`);
    return cpu ?? Number.NaN;
  };

  for (const operation of ["verify", "settle"] as const) {
    const without: number[] = [];
    const watched: number[] = [];
    for (let round = -warmUps[operation]; round < rounds[operation]; round++) {
      for (const areHeard of round % 2 === 0 ? [false, true] : [true, false]) {
        const cpu = await turn(operation, areHeard);
        if (round >= 0) (areHeard ? watched : without).push(cpu);
      }
    }
    const more = watched.map((cpu, round) => cpu / (without[round] ?? Number.NaN) - 1);
    const [low, high] = [quantile(more, 0.25), quantile(more, 0.75)];
    const [least, most] = [mean(without), mean(watched)];
    console.log(
      `${operation}: service CPU ${least.toFixed(3)} ms each without the studio, ${most.toFixed(3)} ms with it: ${percent(most / least - 1)}; of neighbouring turns ${percent(median(more))} (half of them ${percent(low)} to ${percent(high)})`,
    );
  }
  child.disconnect();
  await once(child, "exit");
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
