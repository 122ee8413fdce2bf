import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createGlobalSetup } from "../../../src/harness/vitest/global-setup.ts";
import { leaseHarness } from "../../../src/harness/vitest/index.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { repository } from "../../support/cli.ts";
import { isRunning, stillRunningAfter } from "../../support/live-processes.ts";
import { descendantsOf } from "../../support/processes.ts";
import { programsVariable } from "../../support/programs.ts";

/* `x402-facilitator-kit/vitest` in a run of vitest of its own, over the files of an integrator. */

let directory: string;
let child: ChildProcess | undefined;
const seen = new Set<number>();
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-test-"));
});
afterEach(async () => {
  for (const pid of [child?.pid, ...seen])
    if (pid !== undefined && isRunning(pid)) process.kill(pid, "SIGKILL");
  seen.clear();
  await rm(directory, { recursive: true });
});

/** Starts vitest over files of the integrator's project, as a terminal would. */
function startVitest(
  files: readonly string[],
  maxHarnesses: number,
  stdio: "ignore" | "pipe" = "ignore",
): ChildProcess {
  const report = ["--reporter=json", `--outputFile=${join(directory, "report.json")}`];
  const started = spawn(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--config",
      "test/support/consumer/vitest.config.ts",
      ...(stdio === "pipe" ? ["--reporter=default"] : report),
      ...files,
    ],
    {
      cwd: repository,
      env: {
        ...childEnvironment(),
        [programsVariable]: process.env[programsVariable],
        MAX_HARNESSES: String(maxHarnesses),
        READY_FILE: join(directory, "ready"),
      },
      stdio,
    },
  );
  child = started;
  const watching = setInterval(() => {
    for (const pid of descendantsOf(started.pid ?? 0)) seen.add(pid);
  }, 20);
  started.on("exit", () => clearInterval(watching));
  return started;
}

type Report = { testResults: { name: string; assertionResults: { status: string }[] }[] };

/** How the tests of each file ended. */
async function reported(): Promise<Record<string, string[]>> {
  const { testResults } = JSON.parse(await readFile(join(directory, "report.json"), "utf8")) as Report;
  return Object.fromEntries(
    testResults.map(({ name, assertionResults }) => [
      name.replace(/^.*\/|\.spec\.ts$/g, ""),
      assertionResults.map(({ status }) => status),
    ]),
  );
}

test("files in parallel and tests at the same time never share a chain, and nothing is left", async () => {
  const [code] = await once(startVitest(["isolated", "shared"], 3), "exit");
  const passed = (count: number) => Array.from({ length: count }, () => "passed");
  expect(await reported()).toEqual({ "isolated-a": passed(5), "isolated-b": passed(5), shared: passed(3) });
  expect(code).toBe(0);
  expect(await stillRunningAfter([...seen])).toEqual([]);
});

test("a test that takes its process along does not keep its harness", async () => {
  const [code] = await once(startVitest(["dies", "isolated-a", "impersonates"], 1), "exit");
  expect(code).toBe(1);
  expect(await reported()).toMatchObject({
    "isolated-a": Array.from({ length: 5 }, () => "passed"),
    impersonates: ["passed", "passed"],
  });
  expect(await stillRunningAfter([...seen])).toEqual([]);
});

test("a test that fails prints what the facilitator did about its payments", async () => {
  const runner = startVitest(["fails"], 1, "pipe");
  let text = "";
  for (const stream of [runner.stdout, runner.stderr]) stream?.on("data", (chunk) => (text += chunk));
  await once(runner, "close");
  expect(text).toContain('What the facilitator did in "expects too much"');
  expect(text).toMatch(
    /\+\d+ ms {2}POST \/v1\/settle → 200 invalid insufficient_funds in .*simulationSucceeds/,
  );
  expect(text).toMatch(/ On a local chain: `harness\.networks\.base\.fund\("0x\w{40}", 10000n\)`\.$/m);
  const [, file = ""] = /^ +more: +(\S+)#insufficient_funds$/m.exec(text) ?? [];
  expect(file).toMatch(/errors\.md$/);
  expect(existsSync(resolve(repository, file))).toBe(true);
  expect(text).toMatch(/ {6}open {2}POST \/v1\/settle has no answer; the last check was \w+/);
  expect(text).toMatch(/ {6}open {2}transaction 0x[0-9a-f]{64} is not mined/);
  expect(text).not.toContain('What the facilitator did in "expects what happens"');
  // An error of the harness, with its hint.
  expect(text).toMatch(
    /This harness has no organization "nobody"\n.*: name others in the option organizations\./,
  );
});

test("kill -9 of the test runner leaves no node", async () => {
  const runner = startVitest(["waits"], 1);
  await expect.poll(() => readFile(join(directory, "ready"), "utf8").catch(() => "")).not.toBe("");
  expect(seen.size).toBeGreaterThan(2);
  runner.kill("SIGKILL");
  expect(await stillRunningAfter([...seen])).toEqual([]);
});

test("without the global setup it is said what is missing", async () => {
  await expect(leaseHarness()).rejects.toThrow(
    "There is no harness to lease: the global setup of x402-facilitator-kit is missing",
  );
});

test.each([
  [{ maxHarnesses: 0 }, "maxHarnesses: 0 is not a whole number from 1 to 1000 (for example 2)"],
  [{ port: 4402 }, "port: cannot be that of several harnesses: leave it out"],
  [
    { networks: ["bas"] },
    'networks: "bas" is not one of base, base-sepolia, optimism, optimism-sepolia, polygon',
  ],
])("a global setup with %j is refused", (options, message) => {
  // As JavaScript may call it.
  expect(() => createGlobalSetup(options as object)).toThrow(message);
});
