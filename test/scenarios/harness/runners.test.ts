import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { childEnvironment } from "../../support/child-environment.ts";
import { repository } from "../../support/cli.ts";
import { stillRunningAfter } from "../../support/live-processes.ts";
import { descendantsOf } from "../../support/processes.ts";

/* The projects of docs/guides/runners.md, as they stand there, run by their runners. */

let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "x402-kit-runners-"));
  await symlink(join(repository, "node_modules"), join(project, "node_modules"));
  const guide = await readFile(join(repository, "docs/guides/runners.md"), "utf8");
  const pool = pathToFileURL(join(repository, "src/pool/index.ts")).href;
  const files = [...guide.matchAll(/^`([\w./-]+\.mjs)`[^\n]*:\n\n```js\n([\s\S]*?)^```/gm)];
  expect(files.length).toBeGreaterThan(4);
  for (const [, path = "", code = ""] of files) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(
      join(project, path),
      code.replaceAll('"x402-facilitator-kit/pool"', JSON.stringify(pool)),
    );
  }
});
afterAll(() => rm(project, { recursive: true }));

/** Runs a program to its end, and gives what it has printed and which of its processes are left. */
async function run(args: readonly string[]): Promise<{ code: number; output: string; left: number[] }> {
  const child = spawn(process.execPath, args, {
    cwd: project,
    env: { ...childEnvironment(), NO_COLOR: "1" },
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
  return { code, output, left: await stillRunningAfter([...seen], 3_000) };
}

// The guide says what to do where Node has no such option.
const hasGlobalSetup = process.allowedNodeEnvironmentFlags.has("--test-global-setup");
test.runIf(hasGlobalSetup)("node:test: files lease harnesses from the pool of the global setup", async () => {
  // A second file at the same time, which would be in the way of the first on one harness.
  const shop = await readFile(join(project, "test/shop.test.mjs"), "utf8");
  await writeFile(join(project, "test/other.test.mjs"), shop);
  const { code, output, left } = await run([
    "--test",
    "--test-global-setup=test/setup.mjs",
    "test/*.test.mjs",
  ]);
  expect(output).toContain("pass 4");
  expect([code, left]).toEqual([0, []]);
});

test("Playwright: each test leases a harness of its own", async () => {
  const cli = join(repository, "node_modules/@playwright/test/cli.js");
  const { code, output, left } = await run([cli, "test", "--workers", "2", "--reporter", "line"]);
  expect(output).toContain("2 passed");
  expect([code, left]).toEqual([0, []]);
});
