import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness } from "../../../src/harness/index.ts";
import { type TestPayer, testPayers } from "../../../src/published/test-payers.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { repository } from "../../support/cli.ts";

/* What the README and the guide say of the harness is tried in projects that have the package installed. */

const run = promisify(execFile);

/** Has `node_modules`, where the projects below it find the package. */
let root: string;
let project: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "x402-kit-test-"));
  await install();
});
beforeEach(async () => {
  project = await mkdtemp(join(root, "project-"));
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
});
afterAll(() => rm(root, { recursive: true }));

/** Everything that is installed here, and the package itself, compiled, with its exports. */
async function install(): Promise<void> {
  await run("npm", ["run", "build", "--", "--if-changed"], { cwd: repository });
  const modules = join(root, "node_modules");
  const own = join(modules, "x402-facilitator-kit");
  await mkdir(own, { recursive: true });
  for (const entry of await readdir(join(repository, "node_modules"))) {
    if (entry !== ".vite" && entry !== ".package-lock.json") {
      await symlink(join(repository, "node_modules", entry), join(modules, entry));
    }
  }
  // A copy, not a link: test runners import what really lies below node_modules as it is.
  for (const entry of ["dist", "package.json"]) {
    await cp(join(repository, entry), join(own, entry), { recursive: true });
  }
}

/** The examples of a page that name their file, by that name. */
async function examplesOf(page: string): Promise<Map<string, string>> {
  const text = await readFile(join(repository, page), "utf8");
  const blocks = [...text.matchAll(/^```ts\n\/\/ (\S+\.ts)\n(.*?)^```$/gms)];
  return new Map(blocks.map(([, name = "", code = ""]) => [name, code]));
}

async function write(examples: ReadonlyMap<string, string>): Promise<void> {
  for (const [name, code] of examples) await writeFile(join(project, name), code);
}

/** With time for a busy machine: a test has 5 s by itself. */
const vitest = ["../node_modules/vitest/vitest.mjs", "run", "--testTimeout=50000", "--hookTimeout=50000"];

/** Runs vitest over the project; gives how it ended and what it printed. */
async function runVitest(): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [...vitest, "--no-color"], {
    cwd: project,
    env: { ...childEnvironment() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  const [code] = await once(child, "close");
  return { code, output };
}

test("the README's example of end-to-end tests passes", async () => {
  const examples = await examplesOf("README.md");
  expect([...examples.keys()]).toEqual(["vitest.config.ts", "payments.test.ts"]);
  await write(examples);
  const { code, output } = await runVitest();
  expect(output).toMatch(/Tests +3 passed \(3\)/);
  expect(code).toBe(0);
});

test("the guide's vitest examples pass", async () => {
  await write(await examplesOf("docs/guides/harness.md"));
  const { code, output } = await runVitest();
  expect(output).toMatch(/Tests +5 passed \(5\)/);
  expect(code).toBe(0);
});

/** Runs a program of a page, and compares what it prints with its comments. */
async function runExample(name: string, code: string): Promise<void> {
  const promised = [...code.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => text);
  const { stdout } = await run(process.execPath, [join(project, name)]);
  expect(stdout.trimEnd().split("\n").filter(Boolean), name).toEqual(promised);
}

test("the shop and the buyer of the guide to ways to pay print what their comments say", async () => {
  const examples = await examplesOf("docs/guides/ways-to-pay.md");
  expect([...examples.keys()]).toEqual(["ways.ts"]);
  await write(examples);
  await runExample("ways.ts", examples.get("ways.ts") ?? "");
});

test("the guide's programs print what their comments say", async () => {
  const examples = await examplesOf("docs/guides/harness.md");
  // The URL of the guide is that of `up`.
  await using harness = await createHarness({ networks: ["base"] });
  const connect = examples.get("connect.ts") ?? "";
  examples.set("connect.ts", connect.replace("http://127.0.0.1:4402", harness.facilitator.url));
  await write(examples);
  for (const name of ["pay.ts", "deployment.ts", "repeatable.ts", "connect.ts"]) {
    await runExample(name, examples.get(name) ?? "");
  }
});

test("the README's table of test payers is that of the code", async () => {
  const readme = await readFile(join(repository, "README.md"), "utf8");
  const rows = [...readme.matchAll(/^\| `([a-z]\w+)` \| [^|]+ \| (.*) \|$/gm)];
  expect(rows.map(([, name]) => name).sort()).toEqual(Object.keys(testPayers).sort());
  for (const [, name = "", says] of rows) {
    const payer = Object.entries<TestPayer>(testPayers).find(([known]) => known === name)?.[1];
    const { outcome, settleOutcome, permit2Outcome } = payer ?? {};
    const byPermit2 = permit2Outcome === undefined ? "" : `; by Permit2 \`${permit2Outcome}\``;
    const verdict = (outcome === "success" ? "settles" : `\`${outcome}\``) + byPermit2;
    const wanted =
      settleOutcome === undefined ? verdict : `verify says valid; settle reverts: \`${settleOutcome}\``;
    expect(says, name).toBe(wanted);
  }
});
