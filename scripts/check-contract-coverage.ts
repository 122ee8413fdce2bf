/** Exits with 1 if the tests leave a line or a branch of the facilitator contract uncovered. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runForge } from "./forge.ts";

const contract = "contracts/X402Facilitator.sol";

const env = {
  FOUNDRY_PROFILE: "tests",
  // Tests the instrumented build instead of the published code, whose gas differs.
  X402_ARTIFACTS: "",
  FORGE_SNAPSHOT_CHECK: "false",
  FORGE_SNAPSHOT_EMIT: "false",
  // The tests themselves run all cases; the first few are enough to reach a line.
  FOUNDRY_FUZZ_RUNS: "24",
};

async function measure(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "x402-coverage-"));
  try {
    const report = join(directory, "lcov.info");
    // Left out: tests of gas and size, whose figures differ from a release's here; tests of mocks, which never reach
    // the contract; and invariants, which reach nothing that other tests leave out. Skipped files are not compiled.
    const left = ["GasPer", "Size.t", "Mock", "Permit2Vectors", "invariants/"].map(
      (name) => `contracts/test/${name}*`,
    );
    const selection = left.flatMap((files) => ["--skip", files]);
    // A separate build, apart from a concurrent run of the tests with other settings.
    const build = ["--out", join(directory, "out"), "--cache-path", join(directory, "cache")];
    const status = runForge(
      ["coverage", ...selection, ...build, "--report", "lcov", "--report-file", report],
      { stdout: "ignore", env },
    );
    if (status !== 0) throw new Error("The coverage could not be measured: forge says why above.");
    return await readFile(report, "utf8");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Finds uncovered records of one file in lcov's format: `DA:line,hits` and `BRDA:line,block,branch,hits`. */
function untouched(lcov: string): string[] {
  const section = lcov.split("end_of_record").find((part) => part.includes(`SF:${contract}\n`));
  if (section === undefined) throw new Error(`The coverage report does not mention ${contract}.`);
  const missing: string[] = [];
  for (const record of section.split("\n")) {
    const [kind = "", fields = ""] = record.split(":");
    if (kind !== "DA" && kind !== "BRDA") continue;
    const values = fields.split(",");
    const hits = values.at(-1);
    if (hits === "0" || hits === "-") {
      missing.push(`${contract}:${values[0]} ${kind === "DA" ? "line" : "branch"} never reached`);
    }
  }
  return missing;
}

const missing = untouched(await measure());
if (missing.length > 0) {
  console.error(missing.join("\n"));
  process.exitCode = 1;
}
