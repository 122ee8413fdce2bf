import { escapeXml, type JunitCase, renderJunitXml } from "../../util/junit.ts";
import { describeFinding, type Finding, isBad, type Judgment } from "./judgment.ts";

/** A judgment as JUnit XML: a test for each case, in a suite for each network. What only differs is no failure. */
export function renderJudgmentJunit({ subject, findings, problem }: Judgment): string {
  const suites = Map.groupBy(findings, ({ network }) => network);
  const failed = { name: "judgment", className: "judge", tookMs: 0, error: problem };
  return renderJunitXml(
    `x402 judgment of ${subject}`,
    new Map<string, readonly JunitCase[]>([
      ...[...suites].map(([network, some]) => [network, some.map(junitCaseOf)] as const),
      ...(problem === undefined ? [] : [["judgment", [failed]] as const]),
    ]),
  );
}

function junitCaseOf(finding: Finding): JunitCase {
  const { name, verdict, verdictText, level, notes, tookMs } = finding;
  const lines = describeFinding(finding);
  return {
    ...{ name, className: `judge.${verdict}`, tookMs },
    ...(level === "wrong" && { failure: { message: verdictText, lines } }),
    ...(level === "differs" && { notes: [verdictText, ...lines] }),
    ...(level === "not_run" && { skipped: notes.join("; ") }),
    ...(level === "not_judged" && { error: notes.join("; ") }),
  };
}

/**
 * A judgment as SARIF 2.1.0, which code scanning reads: a rule for each case, a result for each bad one.
 *
 * @param file the file that code scanning attaches the results to
 */
export function renderSarif(file: string, { findings, problem }: Judgment): string {
  const rules = findings.map(({ name, situation, safe }) => ({
    id: name,
    shortDescription: { text: situation },
    help: { text: safe },
  }));
  const results = findings.filter(isBad).map((finding) => ({
    ruleId: finding.name,
    level: finding.level === "wrong" ? "error" : "warning",
    message: { text: [finding.verdictText, ...describeFinding(finding)].join("\n") },
    locations: [{ physicalLocation: { artifactLocation: { uri: file }, region: { startLine: 1 } } }],
  }));
  const invocation = {
    executionSuccessful: problem === undefined,
    ...(problem !== undefined && {
      toolExecutionNotifications: [{ level: "error", message: { text: problem } }],
    }),
  };
  return JSON.stringify({
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "x402-kit judge", rules } }, results, invocations: [invocation] }],
  });
}

/** A badge for a README: how many of the cases that ran are good. */
export function renderBadge({ findings, problem }: Judgment): string {
  const good = findings.filter(({ level }) => level === "good").length;
  const ran = good + findings.filter(isBad).length;
  const label = "x402 judge";
  const value = problem === undefined ? `${good} of ${ran} good` : "could not judge";
  const [left, right] = [label, value].map((text) => 10 + 7 * text.length) as [number, number];
  const color = problem !== undefined ? "#757575" : good === ran ? "#2e7d32" : "#c62828";
  const text = (x: number, shown: string) => `<text x="${x}" y="14">${escapeXml(shown)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${value}">`,
    `<rect width="${left}" height="20" fill="#444"/>`,
    `<rect x="${left}" width="${right}" height="20" fill="${color}"/>`,
    `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">`,
    `${text(left / 2, label)}${text(left + right / 2, value)}</g>`,
    "</svg>",
    "",
  ].join("\n");
}
