import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createFixtures } from "../../../src/fixtures/index.ts";
import { createHarness } from "../../../src/harness/index.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { repository } from "../../support/cli.ts";
import { findFreePort } from "../../support/postgres.ts";
import { runHere } from "../../support/run-here.ts";

/* What the README and the guide say of the harness is tried in projects that have the package installed. */

const run = promisify(execFile);

/** Has `node_modules`, where the projects below it find the package. */
let root: string;
let project: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "x402-kit-test-"));
  await install();
  // It may have to be built.
}, 180_000);
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
  expect([...examples.keys()]).toEqual(["vitest.config.ts", "shop.test.ts"]);
  const port = String(await findFreePort());
  const shop = examples.get("shop.test.ts") ?? "";
  await write(examples.set("shop.test.ts", shop.replaceAll(/\b4021\b/g, port)));
  const { code, output } = await runVitest();
  expect(output).toMatch(/Tests +2 passed \(2\)/);
  expect(code).toBe(0);
});

test.each([
  ["harness", 4],
  ["fixtures", 2],
])("the vitest examples of the guide to %s pass", async (guide, count) => {
  await write(await examplesOf(`docs/guides/${guide}.md`));
  const { code, output } = await runVitest();
  expect(output).toMatch(new RegExp(`Tests +${count} passed \\(${count}\\)`));
  expect(code).toBe(0);
});

/** Runs a program of a page, and compares what it prints with its comments. */
async function runExample(name: string, code: string, env: Record<string, string> = {}): Promise<void> {
  const promised = [...code.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => text);
  const { stdout } = await run(process.execPath, [name], {
    cwd: project,
    env: { ...childEnvironment(), ...env },
  });
  expect(stdout.trimEnd().split("\n").filter(Boolean), name).toEqual(promised);
}

/** Files that vitest runs, or is configured with. */
const ofVitest = /\.test\.ts$|^vitest\.config\.ts$|^global-setup\.ts$/;

test.each(["harness", "ways-to-pay", "fixtures", "networks", "operations", "extensions"])(
  "the programs of the guide to %s print what their comments say",
  async (guide) => {
    const page = `docs/guides/${guide}.md`;
    const examples = await examplesOf(page);
    const text = await readFile(join(repository, page), "utf8");
    // Every program has the name of a file, and so is run here.
    expect(text.match(/^```ts\n(?=import )/gm)).toBeNull();
    const networkFile = /^```json\n(.*?)^```$/ms.exec(text)?.[1];
    if (networkFile !== undefined) await writeFile(join(project, "networks.json"), networkFile);
    // The URL of the guide is that of `up`, and its port may be in use.
    await using harness = await createHarness({ networks: ["base"] });
    for (const [name, code] of examples) {
      examples.set(name, code.replace("http://127.0.0.1:4402", harness.facilitator.url));
    }
    await write(examples);
    const programs = [...examples].filter(([name]) => !ofVitest.test(name));
    expect(programs.length).toBeGreaterThan(0);
    // Of what reads the database of `serve`.
    const env = {
      DATABASE_URL: `sqlite:${join(project, "facilitator.db")}`,
      API_KEY_PEPPER: randomBytes(32).toString("hex"),
    };
    if (guide === "operations") expect((await runHere(["migrate"], env)).code).toBe(0);
    for (const [name, code] of programs) await runExample(name, code, env);
  },
  180_000,
);

test("the journal of the guide to payments is what its program prints", async () => {
  await write(await examplesOf("docs/guides/payments.md"));
  const { stdout } = await run(process.execPath, ["journal.ts"], { cwd: project });
  expect(stdout).toMatch(/^payment 0x[0-9a-f]{64}\n {2}of 0\.01 USDC \(10000 units of 0x/);
  expect(stdout).toContain("eth_sendRawTransaction [fault: answer-lost]");
  expect(stdout).toMatch(/POST \/v1\/settle → 200 settled 0x/);
});

test("the scenarios that the guide to fixtures names can be asked for as it says", async () => {
  const text = await readFile(join(repository, "docs/guides/fixtures.md"), "utf8");
  const lines = /^```ts\n(fixtures\.scenario.*?)^```$/ms.exec(text)?.[1] ?? "";
  expect(lines.match(/^fixtures\./gm)?.length).toBe(5);
  const fixtures = createFixtures({ baseUrl: "https://facilitator.example" });
  expect(() => new Function("fixtures", lines)(fixtures)).not.toThrow();
  fixtures.dispose();
});
