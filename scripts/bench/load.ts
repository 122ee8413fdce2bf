import { readdirSync, readFileSync } from "node:fs";
import { Agent, request } from "node:http";

/** The result of a run of requests. Times are in milliseconds. */
export type Load = Awaited<ReturnType<typeof load>>;

/**
 * Posts the bodies over `connections` kept-alive connections, measures the responses, and prints the most frequent bad
 * ones.
 */
export async function load(options: {
  url: string;
  headers?: Record<string, string>;
  bodies: readonly string[];
  connections: number;
  /** A part of every good response. */
  expect: string;
  /** The server's process id. */
  pid: number;
}) {
  const { url, headers = {}, bodies, connections, expect, pid } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies: number[] = [];
  const others: string[] = [];
  let good = 0;
  let next = 0;
  const worker = async () => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const from = performance.now();
      const answer = await post(agent, url, headers, body).catch(({ message }: Error) => message);
      latencies.push(performance.now() - from);
      if (answer.includes(expect)) good++;
      else others.push(answer.replaceAll(/0x[0-9a-f]+|"request\w*":"[^"]*"/gi, "…").slice(0, 300));
    }
  };
  const cpuBefore = cpuMs(pid);
  const from = performance.now();
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - from) / 1_000;
  const cpuAfter = cpuMs(pid);
  agent.destroy();
  const kinds = [...Map.groupBy(others, (answer) => answer)].sort(([, a], [, b]) => b.length - a.length);
  for (const [answer, { length }] of kinds.slice(0, 3)) {
    console.error(`${length} of ${latencies.length} answers: ${answer}`);
  }
  latencies.sort((a, b) => a - b);
  const total = latencies.length;
  return {
    count: total,
    /** The number of responses that contain the expected text. */
    good,
    perSecond: good / seconds,
    p50: latencies[Math.floor(total * 0.5)] ?? 0,
    p99: latencies[Math.floor(total * 0.99)] ?? 0,
    /** CPU milliseconds of the server's process per request; undefined on systems without /proc. */
    cpu: cpuBefore === undefined || cpuAfter === undefined ? undefined : (cpuAfter - cpuBefore) / total,
  };
}

/** The CPU milliseconds that a process has used so far, from /proc; undefined on systems without it. */
export function cpuMs(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    // In nanoseconds; `stat` counts in steps of 10 ms.
    return threads.reduce((sum, thread) => sum + cpuNanoseconds(pid, thread), 0) / 1e6;
  } catch {
    return undefined;
  }
}

function cpuNanoseconds(pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  } catch {
    // The thread has ended since it was listed.
    return 0;
  }
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function post(agent: Agent, url: string, headers: Record<string, string>, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method: "POST", headers: { "content-type": "application/json", ...headers }, agent },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve(text));
        response.on("error", reject);
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
