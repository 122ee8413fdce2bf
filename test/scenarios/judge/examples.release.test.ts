import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { repository, runCli } from "../../support/cli.ts";
import { judge } from "../../support/judge/judge.ts";

/*
 * The examples of this repository, in the cases that the public packages alone do not pass; in all of them with
 * `npm run judge:examples`.
 */

const example = (file: string) => [process.execPath, join(repository, "examples", file)];

test("the example's buyer pays once, and gets what it paid for when answers are lost", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-judge-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const junit = join(folder, "judge.xml");
  const cases = "facilitator-answer-lost,nothing-redelivered,reset-in-body";
  const { code } = await runCli([
    ...["judge", "client", "--cases", cases, "--junit", junit],
    ...["--", ...example("buyer/src/main.ts")],
  ]);
  expect(code).toBe(0);
  expect(await readFile(junit, "utf8")).toContain('tests="4" failures="0"');
});

test("the example's shop delivers what it has settled to a buyer who was gone", async () => {
  const { bad } = await judge(
    "shop",
    example("merchant/src/main.ts"),
    ...["--network", "base", "--cases", "buyer-gone,same-twice,two-routes,bought-elsewhere"],
  );
  expect(bad).toEqual({});
});
