import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { repository } from "../../support/cli.ts";
import { subject } from "../../support/judge/judge.ts";

/*
 * The GitHub Action: its steps are executed here as a runner executes them, with npx giving this checkout.
 */

const action = z.object({
  inputs: z.record(
    z.string(),
    z.object({ default: z.string().optional(), required: z.boolean().optional() }),
  ),
  runs: z.object({
    using: z.literal("composite"),
    steps: z.array(
      z.union([
        z.object({ uses: z.string() }),
        z.object({ shell: z.literal("bash"), env: z.record(z.string(), z.string()), run: z.string() }),
      ]),
    ),
  }),
});

const workflow = z.object({
  jobs: z.record(
    z.string(),
    z.object({
      steps: z.array(
        z.object({ uses: z.string().optional(), with: z.record(z.string(), z.string()).optional() }),
      ),
    }),
  ),
});

async function readYaml<T>(file: string, schema: z.ZodType<T>): Promise<T> {
  return schema.parse(parse(await readFile(join(repository, file), "utf8")));
}

/** Executes the steps of the action as a runner does: each in bash, the ones after a failed one where they always run. */
async function runAction(given: Readonly<Record<string, string>>) {
  const { inputs, runs } = await readYaml("action.yml", action);
  const folder = await mkdtemp(join(tmpdir(), "x402-action-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "bin"));
  const npx = `#!/usr/bin/env bash\n[ "$1 $2 $3 $4" = "--yes --package x402-facilitator-kit@latest x402-kit" ] || exit 99\nshift 4\nexec "${process.execPath}" "${repository}/src/cli/bin.ts" "$@"\n`;
  await writeFile(join(folder, "bin/npx"), npx);
  await chmod(join(folder, "bin/npx"), 0o755);
  const summary = join(folder, "summary.md");
  let failed = false;
  for (const step of runs.steps) {
    if ("uses" in step) continue;
    const env = Object.fromEntries(
      Object.entries(step.env).map(([name, value]) => [
        name,
        value.replace(
          /\$\{\{ inputs\.([\w-]+) \}\}/g,
          (_, input) => given[input] ?? inputs[input]?.default ?? "",
        ),
      ]),
    );
    const { PATH = "", HOME = "" } = process.env;
    const all = { ...env, HOME, PATH: `${folder}/bin:${PATH}`, GITHUB_STEP_SUMMARY: summary };
    const options = ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step.run];
    await promisify(execFile)("bash", options, { cwd: folder, env: all }).catch(() => {
      failed = true;
    });
  }
  const read = (name: string) => readFile(join(folder, name), "utf8");
  return { failed, read };
}

test("the action judges a client, writes its reports, and shows the table", async () => {
  const command = subject("buyer", "safe").join(" ");
  const { failed, read } = await runAction({
    judge: "client",
    command,
    options: "--cases redirect --seed 3",
  });
  expect(failed).toBe(false);
  expect(await read("summary.md")).toMatch(
    /^```text\n[\s\S]*redirect +1 +1 +paid once and served\n[\s\S]*```\n$/,
  );
  expect(await read("x402-judge/judge.xml")).toContain('tests="2" failures="0"');
  expect(await read("x402-judge/badge.svg")).toContain("2 of 2 good");
  expect(JSON.parse(await read("x402-judge/judge.sarif"))).toMatchObject({ version: "2.1.0" });
});

test("the action fails for a shop that charges and serves nothing, and still shows why", async () => {
  const command = subject("shop", "greedy").join(" ");
  const { failed, read } = await runAction({
    ...{ judge: "shop", command, options: "--cases plain", "report-folder": "reports/shop" },
  });
  expect(failed).toBe(true);
  expect(await read("summary.md")).toContain("plain: charged without service");
  expect(await read("reports/shop/judge.xml")).toContain('failures="1"');
});

test("the example workflow gives the action what it takes", async () => {
  const { inputs } = await readYaml("action.yml", action);
  const { jobs } = await readYaml("examples/workflows/judge.yml", workflow);
  const step = jobs.judge?.steps.find(({ uses }) => uses?.includes("x402-facilitator-kit"));
  const given = Object.keys(step?.with ?? {});
  expect(given.filter((name) => !(name in inputs))).toEqual([]);
  for (const [name, { required }] of Object.entries(inputs)) {
    if (required === true) expect(given).toContain(name);
  }
});
