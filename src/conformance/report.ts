import type { Difference } from "../fixtures/engine/answer.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import type { ConformanceResult } from "./run-conformance.ts";
import type { Obstacle } from "./why-not-run.ts";

/** How many scenarios ended in which way. */
export type Tally = Record<ConformanceResult["outcome"], number>;

/** Counts what became of scenarios. */
export function tally(results: readonly ConformanceResult[]): Tally {
  const count = (outcome: ConformanceResult["outcome"]) =>
    results.filter((result) => result.outcome === outcome).length;
  return { passed: count("passed"), failed: count("failed"), not_run: count("not_run") };
}

/** The part of a scenario's name that says what the answer is: `insufficient_funds`. */
export function groupOf({ scenario }: ConformanceResult): string {
  return scenario.name.split(".").at(-2) ?? "";
}

/** The report as data. */
export function describeResults(
  { baseUrl, environment, isKit }: FoundFacilitator,
  results: readonly ConformanceResult[],
) {
  const { passed, failed, not_run } = tally(results);
  return {
    facilitator: `${baseUrl}/v1`,
    network: environment.network.name,
    compared: isKit ? "everything" : "contract",
    passed,
    failed,
    notRun: not_run,
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

/** A place where answers differ, on one line. */
export function differenceLine({ at, expected, got }: Difference): string {
  return `${at}: expected ${expected}, got ${got}`;
}
