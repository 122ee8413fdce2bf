import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { valid } from "semver";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import manifest from "../package.json" with { type: "json" };
import { childEnvironment } from "./support/child-environment.ts";

/* The workflow that publishes a version. It runs on a tag alone, where a mistake would be seen too late. */

const step = z.object({
  run: z.string().optional(),
  uses: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  "continue-on-error": z.never().optional(),
  if: z.never().optional(),
});
const job = z.object({
  needs: z.array(z.string()).optional(),
  permissions: z.record(z.string(), z.string()),
  steps: z.array(step),
  if: z.never().optional(),
  "continue-on-error": z.never().optional(),
});
const workflow = z.object({
  on: z.strictObject({ push: z.strictObject({ tags: z.array(z.string()) }) }),
  permissions: z.record(z.string(), z.string()),
  jobs: z.strictObject({ test: job, pack: job, publish: job }),
});
type Job = z.infer<typeof job>;

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFile(join(root, path), "utf8");

let release: z.infer<typeof workflow>;
beforeAll(async () => {
  release = workflow.parse(parse(await read(".github/workflows/release.yml")));
});

const commandsOf = ({ steps }: Job) => steps.flatMap(({ run }) => run ?? []);
const actionsOf = ({ steps }: Job) => steps.flatMap(({ uses }) => uses?.replace(/@.*/, "") ?? []);

test("a version tag publishes with provenance, from a job that runs nothing else and may ask for a token", () => {
  expect(release.on.push.tags).toEqual(["v*"]);
  const { test: tests, pack, publish } = release.jobs;
  expect([release.permissions, tests.permissions, pack.permissions, publish.permissions]).toEqual([
    {},
    { contents: "read" },
    { contents: "read" },
    { "id-token": "write" },
  ]);
  expect(actionsOf(publish)).toEqual(["actions/setup-node", "actions/download-artifact"]);
  expect(commandsOf(publish)).toEqual(["npm publish ./*.tgz --ignore-scripts --provenance --access public"]);
});

test("nothing is published before all tests and checks, on the Node of development", () => {
  const { test: tests, pack, publish } = release.jobs;
  expect(publish.needs).toEqual(["test", "pack"]);
  expect(commandsOf(tests)).toEqual([expect.stringMatching(/^npm ci /), "npm test", "npm run test:release"]);
  expect(manifest.scripts.test.split(" ")).toEqual(
    expect.arrayContaining(["test:ts", "check", "test:contracts"]),
  );
  for (const { steps } of [tests, pack, publish]) {
    const ofNode = steps.find(({ uses }) => uses?.startsWith("actions/setup-node@"));
    expect(String(ofNode?.with?.["node-version"])).toBe(manifest.devDependencies.node.split(".")[0]);
  }
});

test("the package is made without install scripts, from packages whose hashes and signatures are known", () => {
  const { pack, publish } = release.jobs;
  const [, ...commands] = commandsOf(pack);
  expect(commands.map((command) => command.split(" --")[0])).toEqual([
    "npm ci",
    "node scripts/lockfile.ts",
    "npm audit signatures",
    expect.stringMatching(/node scripts\/build\.ts$/),
    "npm pack",
  ]);
  expect(commands).toContain("node scripts/lockfile.ts --complete");
  for (const command of commands.filter((one) => /^npm (ci|pack)/.test(one))) {
    expect(command).toContain("--ignore-scripts");
  }
  const [uploaded, loaded] = [pack, publish].map(({ steps }) =>
    steps.find(({ uses }) => /-artifact@/.test(uses ?? "")),
  );
  expect(uploaded?.with).toMatchObject({ name: loaded?.with?.name, path: "*.tgz" });
});

test("every action is pinned by its commit, with the version beside it", async () => {
  const files = [
    ".github/workflows/release.yml",
    ".github/workflows/test.yml",
    "action.yml",
    "actions/up/action.yml",
  ];
  const texts = await Promise.all(files.map(read));
  const used = texts.flatMap((text) => [...text.matchAll(/\buses: (.*)/g)].map(([, action]) => action));
  expect(used.length).toBeGreaterThan(8);
  for (const action of used) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  expect(parse(texts[1] ?? "").permissions).toEqual({ contents: "read" });
});

test("every script that a workflow runs is one of package.json", async () => {
  for (const name of ["release", "test"]) {
    const text = await read(`.github/workflows/${name}.yml`);
    const scripts = [...text.matchAll(/npm run (?:-\S+ )*([\w:-]+)/g)].map(([, script = ""]) => script);
    const own = /\bnpm test\b/.test(text) ? ["test"] : [];
    expect(own).toEqual(["test"]);
    for (const script of [...scripts, ...own]) expect(Object.keys(manifest.scripts)).toContain(script);
  }
});

test("the version is a semantic one, and the changelog begins with it or with what is not released yet", async () => {
  expect(valid(manifest.version)).toBe(manifest.version);
  const headings = [...(await read("CHANGELOG.md")).matchAll(/^## (.+)$/gm)].map(
    ([, heading = ""]) => heading,
  );
  expect(["Unreleased", manifest.version]).toContain(headings[0]?.split(" ")[0]);
  for (const heading of headings.slice(1)) expect(valid(heading.split(" ")[0])).not.toBeNull();
});

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-release-"));
  await writeFile(join(directory, "package.json"), JSON.stringify({ version: "1.2.3" }));
});
afterAll(() => rm(directory, { recursive: true }));

test.each([
  { tag: "v1.2.3", heading: "## 1.2.3 (2026-11-22)", printed: "" },
  { tag: "v1.2.3", heading: "## 1.2.3", printed: "" },
  {
    tag: "v1.2.4",
    heading: "## 1.2.3",
    printed: "the tag v1.2.4 is not v1.2.3, the version of package.json\n",
  },
  { tag: "v1.2.3", heading: "## Unreleased", printed: "CHANGELOG.md has no heading ## 1.2.3\n" },
  { tag: "v1.2.3", heading: "## 1.2.30", printed: "CHANGELOG.md has no heading ## 1.2.3\n" },
])("the tag $tag is refused unless it is the version, with its changes: $heading", async (given) => {
  const command = commandsOf(release.jobs.pack).find((text) => text.includes("GITHUB_REF_NAME")) ?? "exit 3";
  await writeFile(join(directory, "CHANGELOG.md"), `# Changelog\n\n${given.heading}\n`);
  const env = { ...childEnvironment(), GITHUB_REF_NAME: given.tag };
  // As the runner of the workflow does it.
  const ended = await promisify(execFile)("bash", ["-e", "-c", command], { cwd: directory, env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }) => ({ code, stdout }),
  );
  expect(ended).toEqual({ code: given.printed === "" ? 0 : 1, stdout: given.printed });
});
