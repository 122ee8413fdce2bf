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
const workflow = z.object({
  on: z.strictObject({ push: z.strictObject({ tags: z.array(z.string()) }) }),
  permissions: z.record(z.string(), z.string()),
  jobs: z.strictObject({ publish: z.object({ steps: z.array(step) }) }),
});

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFile(join(root, path), "utf8");

let release: z.infer<typeof workflow>;
let commands: readonly string[];
beforeAll(async () => {
  release = workflow.parse(parse(await read(".github/workflows/release.yml")));
  commands = release.jobs.publish.steps.flatMap(({ run }) => run ?? []);
});

test("a version tag publishes with provenance, for which the job may ask for a token and for nothing else", () => {
  expect(release.on.push.tags).toEqual(["v*"]);
  expect(release.permissions).toEqual({ contents: "read", "id-token": "write" });
  expect(commands.at(-1)).toBe("npm publish --provenance --access public");
});

test("all tests and checks are run before anything is published, on the Node of development", () => {
  const ofNode = release.jobs.publish.steps.find(({ uses }) => uses?.startsWith("actions/setup-node@"));
  expect(String(ofNode?.with?.["node-version"])).toBe(manifest.devDependencies.node.split(".")[0]);
  const order = ["npm ci", "npm test", "npm publish"].map((start) =>
    commands.findIndex((command) => command.startsWith(start)),
  );
  expect(order).not.toContain(-1);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(manifest.scripts.test.split(" ")).toEqual(
    expect.arrayContaining(["test:ts", "check", "test:contracts"]),
  );
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
  const command = commands.find((text) => text.includes("GITHUB_REF_NAME")) ?? "exit 3";
  await writeFile(join(directory, "CHANGELOG.md"), `# Changelog\n\n${given.heading}\n`);
  const env = { ...childEnvironment(), GITHUB_REF_NAME: given.tag };
  // As the runner of the workflow does it.
  const ended = await promisify(execFile)("bash", ["-e", "-c", command], { cwd: directory, env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }) => ({ code, stdout }),
  );
  expect(ended).toEqual({ code: given.printed === "" ? 0 : 1, stdout: given.printed });
});
