import { differenceLine } from "../../fixtures/engine/answer.ts";
import { type JunitCase, renderJunitXml } from "../../util/junit.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import { groupOf, obstacleLine } from "./report.ts";
import type { ConformanceResult } from "./run-conformance.ts";

/** The report as JUnit XML, which CI systems read: a suite for each operation and version. */
export function renderJunit(
  { baseUrl, access }: FoundFacilitator,
  results: readonly ConformanceResult[],
): string {
  const suites = Map.groupBy(
    results,
    ({ scenario }) => `${scenario.operation}, version ${scenario.x402Version}`,
  );
  return renderJunitXml(
    `x402 conformance of ${baseUrl}${access.prefix}`,
    new Map([...suites].map(([name, ofSuite]) => [name, ofSuite.map(describeCase)])),
  );
}

function describeCase(result: ConformanceResult): JunitCase {
  const { scenario } = result;
  const className = `${scenario.operation}.v${scenario.x402Version}.${groupOf(result)}`;
  const common = { name: scenario.name, className };
  if (result.outcome === "not_run") return { ...common, tookMs: 0, skipped: obstacleLine(result) };
  const { tookMs } = result;
  if (result.outcome === "passed") return { ...common, tookMs };
  const lines = result.differences.map(differenceLine);
  const [first = "", ...others] = lines;
  const message = others.length === 0 ? first : `${first}, and ${others.length} more`;
  if (result.level === "kit") return { ...common, tookMs, skipped: `a choice of this kit: ${message}` };
  return { ...common, tookMs, failure: { type: result.level, message, lines: [scenario.means, ...lines] } };
}
