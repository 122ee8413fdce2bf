import { channel } from "node:diagnostics_channel";
import { type Profiler, Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { GCProfiler } from "node:v8";
import { channels } from "../../src/channels/channels.ts";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";

/** What `watching.ts` tells this process before a turn. */
export type Turn = { areHeard: boolean; isProfiled: boolean };

/** What this process tells of the turn before. */
export type TurnCost = {
  /** Milliseconds of garbage collections in the main thread. */
  collections: number;
  /** Milliseconds of CPU of the other threads: the collector's, and those of the database and of files. */
  otherThreads: number;
  /** The part of the main thread's work in which something was published or kept; of turns that were profiled. */
  publishing: number | undefined;
};

/** A harness whose channels are heard or not, in turns, until the parent lets go of it. */
const silenced = Object.values(channels).map(({ name }) => silence(name));
const harness = await startHarness({
  networks: ["base"],
  facilitatorContracts: resolveFacilitatorContracts(),
  host: "127.0.0.1",
  port: 0,
  studio: true,
  logger: createLogger("warn"),
});
const inspector = new Session();
inspector.connect();
await inspector.post("Profiler.enable");
await inspector.post("Profiler.setSamplingInterval", { interval: 250 });
let collections: GCProfiler | undefined;
let otherThreads = readOtherThreads();
let isProfiled = false;

process.send?.(harness.description);
process.on("message", (turn: Turn) => void begin(turn).then((cost) => process.send?.(cost)));
process.once("disconnect", () => void harness.close());

/** Milliseconds of CPU of all threads but this one, until now. */
function readOtherThreads(): number {
  const sum = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;
  return sum(process.cpuUsage()) - sum(process.threadCpuUsage());
}

async function begin(turn: Turn): Promise<TurnCost> {
  const statistics = collections?.stop()?.statistics ?? [];
  const cost = {
    otherThreads: readOtherThreads() - otherThreads,
    // In microseconds.
    collections: statistics.reduce((sum, { cost }) => sum + cost / 1_000, 0),
    publishing: isProfiled ? publishingIn((await inspector.post("Profiler.stop")).profile) : undefined,
  };
  for (const hear of silenced) hear(turn.areHeard);
  isProfiled = turn.isProfiled;
  if (isProfiled) await inspector.post("Profiler.start");
  collections = new GCProfiler();
  collections.start();
  otherThreads = readOtherThreads();
  return cost;
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

/** Where all is for those who look on. What is called from there counts, too. */
const ofObservers = [
  "src/channels/",
  "src/studio/",
  "src/facilitator/publish-checks.ts",
  "src/rpc/methods-about.ts",
];

function publishingIn({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): number {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const kinds = new Map<number, "idle" | "observer" | "other">();

  function kindOf(id: number): "idle" | "observer" | "other" {
    const known = kinds.get(id);
    if (known !== undefined) return known;
    const { url = "", functionName = "" } = frames.get(id) ?? {};
    const path = url.replace("file://", "").replace(root, "");
    const parent = parents.get(id);
    const kind =
      functionName === "(idle)" || url === "node:inspector"
        ? "idle"
        : ofObservers.some((each) => path.startsWith(each))
          ? "observer"
          : parent === undefined
            ? "other"
            : kindOf(parent);
    kinds.set(id, kind);
    return kind;
  }

  const spent = { idle: 0, observer: 0, other: 0 };
  for (const [index, id] of samples.entries()) spent[kindOf(id)] += timeDeltas[index] ?? 0;
  return spent.observer / (spent.observer + spent.other);
}
