import type { FoundFacilitator } from "./find-facilitator.ts";
import { differenceLine, groupOf, obstacleLine, type Tally, tally } from "./report.ts";
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
  const lines = [...suites].flatMap(([name, ofSuite]) => [
    `  <testsuite name="${escapeXml(name)}"${counts(tally(ofSuite))}${time(ofSuite)}>`,
    ...ofSuite.flatMap(renderCase),
    "  </testsuite>",
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escapeXml(`x402 conformance of ${baseUrl}${access.prefix}`)}"${counts(tally(results))}${time(results)}>`,
    ...lines,
    "</testsuites>",
    "",
  ].join("\n");
}

function renderCase(result: ConformanceResult): string[] {
  const { scenario } = result;
  const classname = escapeXml(`${scenario.operation}.v${scenario.x402Version}.${groupOf(result)}`);
  const open = `    <testcase name="${escapeXml(scenario.name)}" classname="${classname}"${time([result])}`;
  switch (result.outcome) {
    case "passed":
      return [`${open}/>`];
    case "not_run":
      return [`${open}>`, `      <skipped message="${escapeXml(obstacleLine(result))}"/>`, "    </testcase>"];
    case "failed": {
      const [first = "", ...others] = result.differences.map(differenceLine);
      const message = others.length === 0 ? first : `${first}, and ${others.length} more`;
      if (result.level === "kit") {
        const why = `a choice of this kit: ${message}`;
        return [`${open}>`, `      <skipped message="${escapeXml(why)}"/>`, "    </testcase>"];
      }
      const text = [scenario.means, first, ...others].map(escapeXml).join("\n");
      return [
        `${open}>`,
        `      <failure type="${result.level}" message="${escapeXml(message)}">${text}</failure>`,
        "    </testcase>",
      ];
    }
  }
}

function counts({ passed, wrong, differs, kit, notRun }: Tally): string {
  const failures = wrong + differs;
  const skipped = kit + notRun;
  return ` tests="${passed + failures + skipped}" failures="${failures}" errors="0" skipped="${skipped}"`;
}

function time(results: readonly ConformanceResult[]): string {
  const ms = results.reduce((sum, result) => sum + (result.outcome === "not_run" ? 0 : result.tookMs), 0);
  return ` time="${(ms / 1_000).toFixed(3)}"`;
}

/** What XML 1.0 has no place for, even escaped, is replaced. */
function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must go
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
      .replace(/[&<>"\n]/g, (character) => `&#${character.codePointAt(0)};`)
  );
}
