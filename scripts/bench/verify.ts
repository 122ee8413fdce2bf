import { Agent, request } from "node:http";
import { signPayment } from "../../src/harness/api/pay.ts";
import { startUp } from "./up.ts";

/** Verifies of plain accounts over HTTP: throughput, latency, and the CPU of the service's process. */
const requests = 6_000;
const up = await startUp(["--json", "--no-demo", "--networks", "base"]);
const { url } = up.description.facilitator;
const headers = { authorization: up.description.organization.apiKey, "content-type": "application/json" };
const bodies = await Promise.all(
  Array.from({ length: 200 }, async () =>
    JSON.stringify(
      (await signPayment(up.description, { network: "base", amount: 1n, validForSeconds: 3_600 })).request,
    ),
  ),
);

for (const concurrency of [1, 16, 64]) {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const count = concurrency === 1 ? requests / 6 : requests;
  await run(agent, concurrency, 500);
  const cpuBefore = up.cpuMs();
  const from = performance.now();
  const latencies = await run(agent, concurrency, count);
  const seconds = (performance.now() - from) / 1_000;
  const cpuAfter = up.cpuMs();
  const cpu =
    cpuBefore === undefined || cpuAfter === undefined
      ? "unknown"
      : `${((cpuAfter - cpuBefore) / count).toFixed(3)} ms`;
  const sorted = latencies.sort((a, b) => a - b);
  console.log(
    `verify, ${String(concurrency).padStart(2)} at a time: ${Math.round(count / seconds)}/s, median ${sorted[Math.floor(count / 2)]?.toFixed(1)} ms, service CPU per verify ${cpu}`,
  );
  agent.destroy();
}
await up.stop();

/** Keeps `concurrency` requests under way until `count` are answered; gives their latencies in milliseconds. */
async function run(agent: Agent, concurrency: number, count: number): Promise<number[]> {
  const latencies: number[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const body = bodies[next++ % bodies.length] ?? "";
      const from = performance.now();
      const answer = await post(agent, body);
      latencies.push(performance.now() - from);
      if (!answer.includes('"isValid":true')) throw new Error(answer);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return latencies;
}

function post(agent: Agent, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/verify`, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
