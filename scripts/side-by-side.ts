import { spawn } from "node:child_process";
import { once } from "node:events";

/*
 * Runs npm scripts at the same time: `node scripts/side-by-side.ts check test:contracts`. What one has printed follows
 * in one piece when it ends. Where one fails, the others still end, and then it exits with 1.
 */

async function run(script: string): Promise<boolean> {
  const started = performance.now();
  const child = spawn("npm", ["run", "--silent", script], {
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  const took = `${((performance.now() - started) / 1_000).toFixed(1)} s`;
  console.log(`npm run ${script}: ${code === 0 ? "passed" : "FAILED"} after ${took}`);
  if (output.trim() !== "") console.log(`${output.trimEnd()}\n`);
  return code === 0;
}

const passed = await Promise.all(process.argv.slice(2).map(run));
process.exitCode = passed.every(Boolean) ? 0 : 1;
