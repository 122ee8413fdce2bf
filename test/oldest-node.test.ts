import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";

/* What users run works on the oldest Node that package.json names. */

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("neither guides nor example programs use syntax that Node 22 lacks", () => {
  const guides = ["README.md", ...globSync("docs/**/*.md", { cwd: root })].flatMap((path) =>
    [...read(path).matchAll(/^```(?:ts|js)\n(.*?)^```/gms)].map(([, code = ""]) => [path, code] as const),
  );
  expect(guides.length).toBeGreaterThan(20);
  const programs = globSync("examples/*/src/**/*.ts", { cwd: root }).map(
    (path) => [path, read(path)] as const,
  );
  expect(programs.length).toBeGreaterThan(2);
  const wrong = [...guides, ...programs].filter(([, code]) => /\b(?:await )?using \w+ =/.test(code));
  expect(wrong.map(([path]) => path)).toEqual([]);
});

const workflow = z.object({
  jobs: z.object({
    test: z.object({
      strategy: z.object({
        matrix: z.object({ include: z.array(z.object({ node: z.string(), run: z.string() })) }),
      }),
    }),
  }),
});

test("CI runs guides and examples on that Node, and everything on the one of development", () => {
  const { include } = workflow.parse(parse(read(".github/workflows/test.yml"))).jobs.test.strategy.matrix;
  const { engines, devDependencies } = JSON.parse(read("package.json"));
  const oldest = include.find(({ node }) => engines.node === `>=${node}`);
  const files = oldest?.run.match(/\btest\/\S+/g) ?? [];
  expect(files.length).toBeGreaterThan(2);
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(include.find(({ run }) => run === "npm test && npm run test:release")?.node).toBe(
    devDependencies.node.split(".")[0],
  );
});
