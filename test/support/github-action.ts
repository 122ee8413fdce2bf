import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { kitVersion } from "../../src/util/self-command.ts";
import { repository } from "./cli.ts";
import { programFile } from "./programs.ts";

/*
 * The GitHub Actions of this repository: their steps are executed as a runner executes them, with npx running this
 * checkout.
 */

const action = z.object({
  inputs: z.record(
    z.string(),
    z.object({ default: z.string().optional(), required: z.boolean().optional() }),
  ),
  outputs: z.record(z.string(), z.object({ value: z.string() })),
  runs: z.object({
    using: z.literal("composite"),
    steps: z.array(
      z.union([
        z.object({ uses: z.string() }),
        z.object({
          id: z.string().optional(),
          shell: z.literal("bash"),
          env: z.record(z.string(), z.string()),
          run: z.string(),
        }),
      ]),
    ),
  }),
});

const workflow = z.object({
  jobs: z.record(
    z.string(),
    z.object({
      steps: z.array(
        z.object({
          id: z.string().optional(),
          uses: z.string().optional(),
          with: z.record(z.string(), z.string()).optional(),
          env: z.record(z.string(), z.string()).optional(),
        }),
      ),
    }),
  ),
});

async function readYaml<T>(file: string, schema: z.ZodType<T>): Promise<T> {
  return schema.parse(parse(await readFile(join(repository, file), "utf8")));
}

/**
 * Executes the steps of an action as a runner does, each in bash. A failed step does not stop those after it.
 * Background processes of a step keep running.
 */
export async function runAction(file: string, given: Readonly<Record<string, string>>) {
  const { inputs, outputs: declared, runs } = await readYaml(file, action);
  const folder = await mkdtemp(join(tmpdir(), "x402-action-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "bin"));
  const npx = `#!/usr/bin/env bash\n[ "$1 $2 $3 $4" = "--yes --package x402-facilitator-kit@${kitVersion()} x402-kit" ] || exit 99\nshift 4\nexec "${process.execPath}" "${programFile("src/cli/bin.ts")}" "$@"\n`;
  await writeFile(join(folder, "bin/npx"), npx);
  await chmod(join(folder, "bin/npx"), 0o755);
  const read = (name: string) => readFile(join(folder, name), "utf8");
  const printed: string[] = [];
  const stepOutputs = new Map<string, string>();
  let failed = false;
  for (const [index, step] of runs.steps.entries()) {
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
    const options = ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step.run];
    const ran = await promisify(execFile)("bash", options, {
      cwd: folder,
      env: {
        ...env,
        HOME,
        PATH: `${folder}/bin:${PATH}`,
        RUNNER_TEMP: folder,
        GITHUB_STEP_SUMMARY: join(folder, "summary.md"),
        GITHUB_OUTPUT: join(folder, `output-${index}`),
      },
    }).catch((error: { stdout: string; stderr: string }) => {
      failed = true;
      return error;
    });
    printed.push(ran.stdout, ran.stderr);
    for (const line of (await read(`output-${index}`).catch(() => "")).split("\n")) {
      const [, name, value] = /^([\w-]+)=(.*)$/.exec(line) ?? [];
      if (name !== undefined) stepOutputs.set(`steps.${step.id}.outputs.${name}`, value ?? "");
    }
  }
  const outputs = Object.fromEntries(
    Object.entries(declared).map(([name, { value }]) => [
      name,
      value.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, from) => stepOutputs.get(from) ?? ""),
    ]),
  );
  return { failed, read, outputs, printed: printed.join("") };
}

/** Finds mistakes in an example workflow's use of an action: unknown inputs and outputs, and missing inputs. */
export async function checkWorkflow(workflowFile: string, actionFile: string): Promise<string[]> {
  const { inputs, outputs } = await readYaml(actionFile, action);
  const { jobs } = await readYaml(workflowFile, workflow);
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const path = join("x402-facilitator-kit", actionFile).replace(/\/action\.yml$/, "");
  const using = steps.filter(({ uses }) => uses === `./${path}`);
  if (using.length === 0) return [`${workflowFile} does not use ./${path}`];
  return using.flatMap(({ id, with: given = {} }) => {
    const used = JSON.stringify(steps).matchAll(new RegExp(`steps\\.${id}\\.outputs\\.([\\w-]+)`, "g"));
    return [
      ...Object.keys(given).filter((name) => !(name in inputs)),
      ...Object.entries(inputs).flatMap(([name, { required }]) =>
        required === true && !(name in given) ? [`${name} is missing`] : [],
      ),
      ...[...used].flatMap(([, name = ""]) => (name in outputs ? [] : [`there is no output ${name}`])),
    ];
  });
}
