import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { scenarios } from "../src/fixtures/cases/scenarios.ts";
import { createFixtureEngine } from "../src/fixtures/engine/engine.ts";
import { situations } from "../src/protocol/catalogue.ts";
import { withoutScenario } from "./support/without-scenario.ts";

/*
 * What CONTRIBUTING says of a new reason: the catalogue's row, its check, and its scenario. The compiler and these tests ask
 * for each of them, and test/scenarios/conformance runs the scenario against the service.
 */

const root = fileURLToPath(new URL("..", import.meta.url));

test("every situation of the catalogue is the answer to a scenario, but for the few that none can bring about", async () => {
  const { environment } = createFixtureEngine({ networks: ["base", "base-sepolia"] });
  const plans = await Promise.all(scenarios.map(({ plan }) => plan(environment)));
  const answered = new Set(
    plans.flatMap(({ answer, again }) =>
      [answer, again].map((one): unknown =>
        one?.kind === "json" ? Reflect.get(one.body, "situation") : undefined,
      ),
    ),
  );
  const missing = Object.keys(situations).filter((situation) => !answered.has(situation));
  expect(missing.sort()).toEqual(withoutScenario);
});

/** Compiles what must follow the catalogue in a copy that has one more reason; gives the files with errors and what they lack. */
async function compileWith(reason: string): Promise<string[]> {
  const copy = mkdtempSync(join(tmpdir(), "catalogue-"));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  cpSync(join(root, "src"), join(copy, "src"), { recursive: true });
  cpSync(join(root, "package.json"), join(copy, "package.json"));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const catalogue = join(copy, "src/protocol/catalogue.ts");
  const text = readFileSync(catalogue, "utf8");
  const place = "export const reasons = {\n";
  expect(text).toContain(place);
  writeFileSync(catalogue, text.replace(place, place + reason));
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: { incremental: false, tsBuildInfoFile: null },
    include: [
      "src/protocol/catalogue-texts.ts",
      "src/fixtures/cases/advice-by-reason.ts",
      "src/fixtures/cases/refusal-cases.ts",
    ],
    exclude: [],
  };
  writeFileSync(join(copy, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { promise, resolve } = Promise.withResolvers<string>();
  const options = { cwd: copy };
  execFile(process.execPath, [tsc, "--checkers", "1", "--pretty", "false"], options, (_error, printed) =>
    resolve(printed),
  );
  return (await promise)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) =>
      line.replace(/^(\S+)\(\d+,\d+\): error TS2741: Property '(\w+)' is missing in .*$/, "$1: $2"),
    );
}

test("a new situation does not compile without its text, nor a new reason without its text, advice and scenarios", async () => {
  const reason = '  too_heavy: of("invalid_payload", { weighs_too_much: terms(giveUp) }),\n';
  expect(await compileWith("")).toEqual([]);
  expect(await compileWith(reason)).toEqual([
    "src/fixtures/cases/advice-by-reason.ts: too_heavy",
    "src/fixtures/cases/refusal-cases.ts: too_heavy",
    "src/protocol/catalogue-texts.ts: too_heavy",
    "src/protocol/catalogue-texts.ts: weighs_too_much",
  ]);
}, 60_000);

test("a new situation does not compile if nothing says what decides it", async () => {
  const reason = '  too_heavy: of("invalid_payload", { weighs_too_much: giveUp }),\n';
  const found = await compileWith(reason);
  expect(found.some((line) => /catalogue\.ts.*not assignable to type 'Row'/.test(line))).toBe(true);
}, 60_000);
