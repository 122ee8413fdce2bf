import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { childEnvironment } from "../child-environment.ts";
import { repository } from "../cli.ts";
import { stillRunningAfter } from "../live-processes.ts";
import { descendantsOf } from "../processes.ts";

/** Writes the files that a guide shows, each after a line with its path, into a project. Returns the paths. */
export async function writeGuideFiles(project: string, guide: string): Promise<string[]> {
  const text = await readFile(join(repository, guide), "utf8");
  const files = [...text.matchAll(/^`([\w./-]+\.mjs)`[^\n]*:\n\n```js\n([\s\S]*?)^```/gm)];
  for (const [, path = "", code = ""] of files) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), code);
  }
  return files.map(([, path = ""]) => path);
}

/** Runs a Node program in a project until it ends. Returns what it printed, and which of its processes still run. */
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
