import type { FoundFacilitator } from "../../conformance/find-facilitator.ts";
import { groupOf, tally } from "../../conformance/report.ts";
import type { ConformanceResult } from "../../conformance/run-conformance.ts";
import type { Difference } from "../../fixtures/engine/answer.ts";
import { renderTable, wrapText } from "../kit/table.ts";

/** An answer of another kind differs everywhere; the first places say enough. */
const mostDifferences = 6;

/** More failures are one mistake in many places: of the others only the names are shown. */
const mostFailures = 20;

/** Longer than any sentence of the service. */
const mostCharacters = 300;

/** The report for a person: a table by what the answers are, then each failure, then what was not run and why. */
export function renderConformance(
  { baseUrl, environment, isKit }: FoundFacilitator,
  results: readonly ConformanceResult[],
): string {
  const { passed, failed, not_run } = tally(results);
  const compared = isKit
    ? "headers and bodies, to the letter"
    : "status, verdict and reason; messages and headers are its own";
  const groups = [...Map.groupBy(results, groupOf)].map(([group, ofGroup]) => {
    const counted = tally(ofGroup);
    return [group, ...[counted.passed, counted.failed, counted.not_run].map(String)];
  });
  const failures = results.filter((result) => result.outcome === "failed");
  const skipped = Map.groupBy(
    results.filter((result) => result.outcome === "not_run"),
    ({ why }) => why,
  );
  return [
    `Conformance of ${baseUrl}/v1 on ${environment.network.name}`,
    `Compared: ${compared}`,
    "",
    renderTable(
      [
        { heading: "scenarios" },
        { heading: "passed", right: true },
        { heading: "failed", right: true },
        { heading: "not run", right: true },
      ],
      [...groups, ["all", `${passed}`, `${failed}`, `${not_run}`]],
    ),
    ...(failures.length === 0
      ? []
      : ["", "Failed", ...failures.slice(0, mostFailures).flatMap(renderFailure)]),
    ...failures.slice(mostFailures).map(({ scenario }) => `  ${scenario.name}`),
    ...(skipped.size === 0 ? [] : ["", "Not run"]),
    ...[...skipped].flatMap(([why, ofWhy]) => renderObstacle(why, ofWhy)),
    "",
    summarize({ passed, failed, not_run }),
    ...(failures.length > 0 && failures.every(isUnauthorized)
      ? ["Every failure is a 401. Is the API key one of this facilitator? Set X402_API_KEY."]
      : []),
  ].join("\n");
}

function renderFailure(result: Extract<ConformanceResult, { outcome: "failed" }>): string[] {
  const { scenario, differences } = result;
  const more = differences.length - mostDifferences;
  return [
    `  ${scenario.name}`,
    `    ${scenario.means}`,
    ...differences.slice(0, mostDifferences).flatMap(renderDifference),
    ...(more > 0 ? [`      and ${more} more`] : []),
  ];
}

function isUnauthorized({ differences }: Extract<ConformanceResult, { outcome: "failed" }>): boolean {
  return differences.some(({ at, got }) => at === "status" && got === "401");
}

function renderObstacle(why: string, results: readonly Extract<ConformanceResult, { outcome: "not_run" }>[]) {
  const lacking = [...new Set(results.flatMap(({ lacking }) => lacking ?? []))];
  const reason = lacking.length === 0 ? why : `${why}: ${lacking.join(", ")}`;
  const [first = "", ...others] = wrapText(reason, 72);
  return [`  ${`${results.length}`.padStart(4)}  ${first}`, ...others.map((line) => `        ${line}`)];
}

function renderDifference({ at, expected, got }: Difference): string[] {
  // The names of members are the facilitator's, and so may be what a terminal acts on.
  return [
    `      ${at.replace(/\p{Cc}/gu, "�")}`,
    `        - ${shorten(expected)}`,
    `        + ${shorten(got)}`,
  ];
}

function shorten(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

function summarize({ passed, failed, not_run }: ReturnType<typeof tally>): string {
  if (passed + failed === 0) return "Nothing was run.";
  const others = not_run === 0 ? "" : ` ${not_run} could not be run.`;
  if (failed === 0) return `All ${passed} scenarios passed.${others}`;
  return `${failed} of ${passed + failed} scenarios failed (- expected, + got).${others}`;
}
