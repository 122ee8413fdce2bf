import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";
import { load } from "./load.ts";
import { signBodies, startDescribed, type Up } from "./up.ts";

/**
 * The cost of traces for a verify: a service without the API, one with the API and no SDK, and one with an SDK that
 * drops all spans. They take the same verifies in turns; the differences are of the sums.
 */
const kinds = ["absent", "unregistered", "registered"] as const;
const rounds = 20;
const requests = 600;
const connections = 64;

const [role] = process.argv.slice(2);
if (role === undefined) await compare();
else await serve(role);

/** In a process of its own: the harness until it is told to end. */
async function serve(kind: string): Promise<void> {
  if (kind === "absent") {
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier !== "@opentelemetry/api") return next(specifier, context);
        throw Object.assign(new Error(`Cannot find package '${specifier}'`), {
          code: "ERR_MODULE_NOT_FOUND",
        });
      },
    });
  }
  if (kind === "unregistered") {
    const { DiagConsoleLogger, DiagLogLevel, diag } = await import("@opentelemetry/api");
    // The API is in use, and no SDK makes spans.
    diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.NONE);
  }
  if (kind === "registered") {
    const { trace } = await import("@opentelemetry/api");
    const { TracerProvider } = await import("@opentelemetry/sdk-trace");
    const dropping = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [dropping] }));
  }
  const harness = await startHarness({
    networks: ["base"],
    facilitatorContracts: resolveFacilitatorContracts(),
    host: "127.0.0.1",
    port: 0,
    logger: createLogger("warn"),
  });
  console.log(JSON.stringify(harness.description));
  process.once("SIGINT", () => void harness.close());
}

type Side = { kind: string; service: Up; bodies: string[] };

async function start(kind: string): Promise<Side> {
  const service = await startDescribed([fileURLToPath(import.meta.url), kind]);
  const signed = await signBodies(service.description, 200, 1);
  const bodies = Array.from({ length: requests }, (_, index) => signed[index % signed.length] ?? "");
  return { kind, service, bodies };
}

async function cpuOf({ service: { description, pid }, bodies }: Side): Promise<number> {
  const { good, cpu = Number.NaN } = await load({
    url: `${description.facilitator.url}/verify`,
    headers: { authorization: description.organization.apiKey },
    bodies,
    connections,
    expect: '"isValid":true',
    pid,
  });
  if (good < requests) throw new Error(`${requests - good} of ${requests} were not good`);
  return cpu;
}

async function compare(): Promise<void> {
  const sides = await Promise.all(kinds.map(start));
  const cpus = new Map(sides.map(({ kind }) => [kind, [] as number[]]));
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const cpu = await cpuOf(side);
      if (round > 0) cpus.get(side.kind)?.push(cpu);
    }
  }
  const absent = sum(cpus.get("absent"));
  for (const [kind, all] of cpus) {
    const added = (sum(all) / absent - 1) * 100;
    console.log(
      `verify, tracing ${kind}: service CPU ${(sum(all) / rounds).toFixed(3)} ms each, ${added.toFixed(1)} % more than without the API`,
    );
  }
  for (const { service } of sides) await service.stop();
}

function sum(cpus: readonly number[] = []): number {
  return cpus.reduce((total, cpu) => total + cpu, 0);
}
