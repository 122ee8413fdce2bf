import { spawn } from "node:child_process";
import { once } from "node:events";
import { childEnvironment } from "../child-environment.ts";
import { stillRunningAfter } from "../live-processes.ts";
import { descendantsOf } from "../processes.ts";

/** Runs a Node program in a project until it ends. Returns its output, and its processes that are still running. */
export async function runToItsEnd(
  project: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; output: string; left: number[] }> {
  const child = spawn(process.execPath, args, {
    cwd: project,
    env: { ...childEnvironment(), NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const seen = new Set<number>();
  const watching = setInterval(() => {
    for (const pid of descendantsOf(child.pid ?? 0)) seen.add(pid);
  }, 50);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const [code] = await once(child, "close");
  clearInterval(watching);
  return { code, output, left: await stillRunningAfter([...seen]) };
}
