import { describeFinding, obstacleOf, type Report } from "./report.ts";
import type { Finding } from "./run-cases.ts";

/** Renders a report as JUnit XML for CI systems, one test per case. A case that only differs is not a failure. */
export function renderJunit({ title, findings, problem }: Report): string {
  const suites = new Map<string, Element[]>();
  for (const finding of findings) {
    suites.set(finding.suite, [...(suites.get(finding.suite) ?? []), elementOf(finding)]);
  }
  const judgment = {
    name: "judgment",
    className: "judge",
    tookMs: 0,
    kind: "error",
    message: problem,
  } as const;
  if (problem !== undefined) suites.set("judgment", [judgment]);
  const lines = [...suites].flatMap(([suite, elements]) => [
    `  <testsuite name="${escapeXml(suite)}"${summaryOf(elements)}>`,
    ...elements.map(renderElement),
    "  </testsuite>",
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escapeXml(title)}"${summaryOf([...suites.values()].flat())}>`,
    ...lines,
    "</testsuites>",
    "",
  ].join("\n");
}

/** A JUnit test: passed unless `kind` is "failure", "error" or "skipped". */
type Element = {
  name: string;
  className: string;
  tookMs: number;
  kind?: "failure" | "error" | "skipped" | "system-out";
  message?: string | undefined;
  lines?: readonly string[];
};

function elementOf(finding: Finding): Element {
  const { name, verdict, text, level, tookMs } = finding;
  const common = { name, className: `judge.${verdict}`, tookMs };
  const lines = describeFinding(finding);
  switch (level) {
    case "good":
      return common;
    case "wrong":
      return { ...common, kind: "failure", message: text, lines };
    case "differs":
      return { ...common, kind: "system-out", lines: [text, ...lines] };
    case "kit":
      return { ...common, kind: "skipped", message: `a choice of this kit: ${text}` };
    default:
      return { ...common, kind: level === "not_run" ? "skipped" : "error", message: obstacleOf(finding) };
  }
}

function renderElement({ name, className, tookMs, kind, message, lines = [] }: Element): string {
  const open = `    <testcase name="${escapeXml(name)}" classname="${escapeXml(className)}"${time(tookMs)}`;
  if (kind === undefined) return `${open}/>`;
  const start = `${kind}${message === undefined ? "" : ` message="${escapeXml(message)}"`}`;
  const inner = lines.length === 0 ? `<${start}/>` : `<${start}>${lines.map(escapeXml).join("\n")}</${kind}>`;
  return `${open}>\n      ${inner}\n    </testcase>`;
}

function summaryOf(elements: readonly Element[]): string {
  const count = (kind: Element["kind"]) => elements.filter((one) => one.kind === kind).length;
  const tookMs = elements.reduce((sum, one) => sum + one.tookMs, 0);
  return ` tests="${elements.length}" failures="${count("failure")}" errors="${count("error")}" skipped="${count("skipped")}"${time(tookMs)}`;
}

function time(ms: number): string {
  return ` time="${(ms / 1_000).toFixed(3)}"`;
}

/** Escapes text for XML and HTML. Characters that XML 1.0 cannot hold, even escaped, are replaced by U+FFFD. */
export function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must go
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
      .replace(/[&<>"\n]/g, (character) => `&#${character.codePointAt(0)};`)
  );
}
