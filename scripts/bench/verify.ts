import { type Load, load } from "./load.ts";
import { signBodies, startUp } from "./up.ts";

/** Verifies of plain accounts over HTTP: throughput, latency, and the CPU of the service's process. */
const requests = 6_000;
const up = await startUp(["--json", "--no-demo", "--networks", "base"]);
const bodies = await signBodies(up.description, 200, 1);

for (const connections of [1, 16, 64]) {
  await run(connections, 500);
  const { perSecond, p50, cpu } = await run(connections, connections === 1 ? requests / 6 : requests);
  console.log(
    `verify, ${String(connections).padStart(2)} at a time: ${Math.round(perSecond)}/s, median ${p50.toFixed(1)} ms, service CPU per verify ${cpu === undefined ? "unknown" : `${cpu.toFixed(3)} ms`}`,
  );
}
await up.stop();

/** Keeps `connections` requests under way until `count` are answered. */
async function run(connections: number, count: number): Promise<Load> {
  const result = await load({
    url: `${up.description.facilitator.url}/verify`,
    headers: { authorization: up.description.organization.apiKey },
    bodies: Array.from({ length: count }, (_, index) => bodies[index % bodies.length] ?? ""),
    connections,
    expect: '"isValid":true',
    pid: up.pid,
  });
  if (result.good < count) throw new Error(`${count - result.good} of ${count} verifies were not valid`);
  return result;
}
