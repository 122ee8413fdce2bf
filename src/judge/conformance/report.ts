import type { FoundFacilitator } from "./find-facilitator.ts";
import type { ConformanceResult } from "./run-conformance.ts";
import type { Obstacle } from "./why-not-run.ts";

/** The number of scenarios by result. */
export type Tally = { passed: number; wrong: number; differs: number; kit: number; notRun: number };

/** Counts scenarios by result. */
export function tally(results: readonly ConformanceResult[]): Tally {
  const tally: Tally = { passed: 0, wrong: 0, differs: 0, kit: 0, notRun: 0 };
  for (const result of results) tally[placeOf(result)]++;
  return tally;
}

function placeOf(result: ConformanceResult): keyof Tally {
  if (result.outcome === "failed") return result.level;
  return result.outcome === "passed" ? "passed" : "notRun";
}

/** The part of a scenario's name that says what the answer is: `insufficient_funds`. */
export function groupOf({ scenario }: ConformanceResult): string {
  return scenario.name.split(".").at(-2) ?? "";
}

/** The report as data. */
export function describeResults(
  { baseUrl, access, environment, isKit }: FoundFacilitator,
  results: readonly ConformanceResult[],
) {
  const { passed, wrong, differs, kit, notRun } = tally(results);
  return {
    facilitator: `${baseUrl}${access.prefix}`,
    network: environment.network.name,
    compared: isKit ? "everything" : "contract",
    passed,
    failed: wrong + differs,
    wrong,
    differs,
    kitOnly: kit,
    notRun,
    scenarios: results.map(({ scenario, ...result }) => {
      const { name, means } = scenario;
      if (result.outcome === "not_run") return { name, means, ...result };
      return { name, means, ...result, tookMs: Math.round(result.tookMs) };
    }),
  };
}

/** Why a scenario was not run, on one line. */
export function obstacleLine({ why, lacking }: Obstacle): string {
  return lacking === undefined ? why : `${why}: ${lacking}`;
}
