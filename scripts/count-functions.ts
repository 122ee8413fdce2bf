/**
 * Counts the functions in `src/` that one verify and one settle run in `serve`, their files, and the calls, by V8's
 * coverage:
 *
 *   npm run count [-- --list]
 *
 * Each count is the smallest of several warm requests, which leaves out timers that fire in between. `--list` also
 * prints the functions, most calls first.
 */
import { Session } from "node:inspector/promises";
import { parseArgs } from "node:util";
import { freePort } from "../src/judge/scene/run-command.ts";
import { startBareChain } from "./bench/bare-chain.ts";
import { markdownTable } from "./bench/markdown.ts";
import { signBodies } from "./bench/up.ts";

const warmUp = 3;
const rounds = 8;
const { values } = parseArgs({ options: { list: { type: "boolean", default: false } } });

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

type Called = { name: string; file: string; calls: number };

const chain = await startBareChain();
const stopping = new AbortController();
const port = await freePort();
const served = serve();
try {
  const origin = `http://127.0.0.1:${port}`;
  await untilReady(origin);
  const rows = [];
  for (const operation of ["verify", "settle"] as const) {
    const counted: Called[][] = [];
    for (const body of await signBodies(chain, warmUp + rounds, 2)) {
      await takeCalled();
      const response = await fetch(`${origin}/v1/${operation}`, {
        method: "POST",
        headers: { authorization: chain.apiKey, "content-type": "application/json" },
        body,
      });
      const answer = await response.text();
      counted.push(await takeCalled());
      if (!/"(isValid|success)":true/.test(answer)) throw new Error(answer);
    }
    const warm = counted.slice(warmUp).sort((a, b) => a.length - b.length || callsOf(a) - callsOf(b));
    const [least = []] = warm;
    const files = new Set(least.map(({ file }) => file)).size;
    rows.push({ request: operation, functions: least.length, files, calls: callsOf(least) });
    if (!values.list) continue;
    for (const { name, file, calls } of least.sort((a, b) => b.calls - a.calls)) {
      console.log(`${operation} ${calls} ${file} ${name}`);
    }
  }
  console.log(markdownTable(rows));
} finally {
  stopping.abort();
  await served;
  await chain.stop();
}

/** Imported only now: calls are counted only for modules that load after the coverage has begun. */
async function serve(): Promise<void> {
  const { main } = await import("../src/cli/main.ts");
  const code = await main(["serve"], {
    print: console.log,
    printError() {},
    env: { ...chain.variables, PORT: `${port}`, LOG_LEVEL: "error" },
    takeSignals: () => stopping.signal,
  });
  if (code !== 0) throw new Error(`serve ended with ${code}`);
}

async function untilReady(origin: string): Promise<void> {
  const isReady = async () => (await fetch(`${origin}/readyz`).catch(() => undefined))?.ok === true;
  while (!(await isReady())) await Promise.race([served, new Promise((resolve) => setTimeout(resolve, 50))]);
}

/** The service's functions called since the last time, without the module bodies. */
async function takeCalled(): Promise<Called[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const root = new URL("../src/", import.meta.url).href;
  return result.flatMap(({ url, functions }) => {
    const file = url.startsWith(root) ? url.slice(root.length) : "";
    // The node's heartbeat runs in this process too.
    if (file === "" || file.startsWith("harness/")) return [];
    return functions.flatMap(({ functionName, ranges: [range] }) =>
      range === undefined || range.count === 0 || range.startOffset === 0
        ? []
        : { name: functionName || "(anonymous)", file, calls: range.count },
    );
  });
}

function callsOf(called: readonly Called[]): number {
  return called.reduce((sum, { calls }) => sum + calls, 0);
}
