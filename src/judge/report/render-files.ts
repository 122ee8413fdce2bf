import { describeFinding, type Finding, type Judgment } from "./judgment.ts";

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
    name,
    className: `judge.${verdict}`,
    tookMs,
    ...(level === "wrong" && { failure: { message: verdictText, lines } }),
    ...(level === "differs" && { notes: [verdictText, ...lines] }),
    ...(level === "not_run" && { skipped: notes.join("; ") }),
    ...(level === "not_judged" && { error: notes.join("; ") }),
  };
}

/** The outcome of one case, for JUnit XML. */
export type JunitCase = {
  name: string;
  /** Its group in reports. */
  className: string;
  /** Zero where it was not run. */
  tookMs: number;
  /** Undefined when it passed. */
  failure?: { type?: string; message: string; lines: readonly string[] } | undefined;
  /** Why it was not run. */
  skipped?: string | undefined;
  /** The reason why its outcome is unknown. */
  error?: string | undefined;
  /** Remarks on one that passed. */
  notes?: readonly string[] | undefined;
};

/** Cases as JUnit XML, which CI systems read, in suites by their names. */
export function renderJunitXml(name: string, suites: ReadonlyMap<string, readonly JunitCase[]>): string {
  const lines = [...suites].flatMap(([suite, cases]) => [
    `  <testsuite name="${escapeXml(suite)}"${summaryOf(cases)}>`,
    ...cases.flatMap(renderCase),
    "  </testsuite>",
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escapeXml(name)}"${summaryOf([...suites.values()].flat())}>`,
    ...lines,
    "</testsuites>",
    "",
  ].join("\n");
}

function renderCase({ name, className, tookMs, ...result }: JunitCase): string[] {
  const open = `    <testcase name="${escapeXml(name)}" classname="${escapeXml(className)}"${time(tookMs)}`;
  const inner = renderResult(result);
  return inner === undefined ? [`${open}/>`] : [`${open}>`, `      ${inner}`, "    </testcase>"];
}

function renderResult({ failure, skipped, error, notes }: Partial<JunitCase>): string | undefined {
  const lines = (some: readonly string[]) => some.map(escapeXml).join("\n");
  if (error !== undefined) return `<error message="${escapeXml(error)}"/>`;
  if (failure !== undefined) {
    const type = failure.type === undefined ? "" : ` type="${escapeXml(failure.type)}"`;
    return `<failure${type} message="${escapeXml(failure.message)}">${lines(failure.lines)}</failure>`;
  }
  if (skipped !== undefined) return `<skipped message="${escapeXml(skipped)}"/>`;
  return notes === undefined ? undefined : `<system-out>${lines(notes)}</system-out>`;
}

function summaryOf(cases: readonly JunitCase[]): string {
  const failures = cases.filter(({ failure }) => failure !== undefined).length;
  const skipped = cases.filter((one) => one.skipped !== undefined).length;
  const errors = cases.filter(({ error }) => error !== undefined).length;
  const tookMs = cases.reduce((sum, one) => sum + one.tookMs, 0);
  return ` tests="${cases.length}" failures="${failures}" errors="${errors}" skipped="${skipped}"${time(tookMs)}`;
}

function time(ms: number): string {
  return ` time="${(ms / 1_000).toFixed(3)}"`;
}

/** Text for XML. What XML 1.0 has no place for, even escaped, is replaced. */
function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must go
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
      .replace(/[&<>"\n]/g, (character) => `&#${character.codePointAt(0)};`)
  );
}
