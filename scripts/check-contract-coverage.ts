/** Exits with 1 when the tests leave a line or a branch of the facilitator contract untouched. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runForge } from "./forge.ts";

const contract = "contracts/X402Facilitator.sol";

const env = {
  FOUNDRY_PROFILE: "tests",
  // The code of the build that is measured, in place of what is published, whose gas is another.
  X402_ARTIFACTS: "",
  FORGE_SNAPSHOT_CHECK: "false",
  FORGE_SNAPSHOT_EMIT: "false",
  // The tests themselves run with all cases; a line is touched by the first few.
  FOUNDRY_FUZZ_RUNS: "24",
};

async function measure(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "x402-coverage-"));
  try {
    const report = join(directory, "lcov.info");
    // Gas and size are not those of a release here, the tests of mocks reach nothing of the contract, and the invariants
    // nothing that the other tests leave out. What is not run is not compiled.
    const left = ["GasPer", "Size.t", "Mock", "Permit2Vectors", "invariants/"].map(
      (name) => `contracts/test/${name}*`,
    );
    const selection = left.flatMap((files) => ["--skip", files]);
    // Its own, beside a run of the tests that compiles otherwise.
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

/** The records of one file in lcov's format: `DA:line,hits` and `BRDA:line,block,branch,hits`. */
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
