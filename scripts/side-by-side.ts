import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";

/*
 * Runs npm scripts at the same time: `node scripts/side-by-side.ts check test:contracts`. A script that passes prints
 * one line; the output of one that fails follows in one piece. The script after `--live` prints as it runs, and holds
 * back the output of the others until it ends. If one fails, the others still finish, and the exit code is 1.
 */

const live = process.argv[2] === "--live" ? process.argv[3] : undefined;
const scripts = process.argv.slice(live === undefined ? 2 : 4);

function start(script: string, stdio: SpawnOptions["stdio"]) {
  return spawn("npm", ["run", "--silent", script], { stdio, shell: process.platform === "win32" });
}

async function runLive(script: string): Promise<boolean> {
  const [code] = await once(start(script, "inherit"), "close");
  return code === 0;
}

async function run(script: string, mayPrint: Promise<unknown>): Promise<boolean> {
  const started = performance.now();
  const child = start(script, ["ignore", "pipe", "pipe"]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  const took = `${((performance.now() - started) / 1_000).toFixed(1)} s`;
  console.log(`npm run ${script}: ${code === 0 ? "passed" : "FAILED"} after ${took}`);
  await mayPrint;
  if (code !== 0) console.log(`npm run ${script}:\n${output.trimEnd()}\n`);
  return code === 0;
}

const liveEnded = live === undefined ? Promise.resolve(true) : runLive(live);
const passed = await Promise.all([liveEnded, ...scripts.map((script) => run(script, liveEnded))]);
process.exitCode = passed.every(Boolean) ? 0 : 1;
