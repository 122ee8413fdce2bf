import { escapeControls, renderTable, terminalWidth, wrapText } from "../../util/text.ts";
import { hasRun, type Report, summarize } from "./report.ts";
import type { Finding } from "./run-cases.ts";

/** The levels that the report goes into, with their headings. */
const headings = {
  wrong: "Wrong",
  differs: "Differs: money and verdicts are right; how it is said is not as it should be, or is left open",
  kit: "Kit only: choices of this kit, which other facilitators need not share",
} as const;

/** Many bad findings usually have one cause, so only the names of further ones are shown. */
const mostShown = 40;

/** The report for a person: a table, then the bad cases with what happened in them, then what was not run and why. */
export function renderText(report: Report): string {
  const { title, about = [], table, findings, differs = headings.differs } = report;
  const left = Map.groupBy(
    findings.filter((finding) => !hasRun(finding)),
    ({ notes }) => notes.join("; "),
  );
  return [
    title,
    ...about,
    "",
    ...renderTable(table.columns, table.rows).split("\n"),
    ...(["wrong", "differs", "kit"] as const).flatMap((level) =>
      renderSection(
        level === "differs" ? differs : headings[level],
        findings.filter((finding) => finding.level === level),
      ),
    ),
    ...(left.size === 0 ? [] : ["", "Not run"]),
    ...Array.from(left).flatMap(([why, some]) => renderObstacle(why, some)),
    "",
    ...summarize(report),
  ]
    .map(escapeControls)
    .join("\n");
}

/** Findings that are alike are one: a program that says one thing otherwise says it so everywhere. */
function renderSection(heading: string, findings: readonly Finding[]): string[] {
  if (findings.length === 0) return [];
  const kinds = [
    ...Map.groupBy(findings, ({ seen, notes, name }) =>
      seen.length === 0 ? name : [...seen, ...notes].join("\n"),
    ).values(),
  ];
  return [
    "",
    heading,
    ...kinds.slice(0, mostShown).flatMap(renderKind),
    ...kinds.slice(mostShown).flatMap((some) => some.map(({ name }) => `  ${name}`)),
  ];
}

function renderKind([finding, ...alike]: readonly Finding[]): string[] {
  if (finding === undefined) return [];
  const { name, text, situation, seen, notes, good } = finding;
  return [
    ...indent(`${name}: ${text}`, 2, 2),
    ...indent(situation, 4),
    ...seen.flatMap((line) => indent(line, 6, 8)),
    ...notes.flatMap((note) => indent(`(${note})`, 6)),
    ...(good === undefined ? [] : indent(`Good: ${good}`, 4)),
    ...(alike.length === 0 ? [] : indent(`The same in ${alike.map((one) => one.name).join(", ")}`, 4)),
  ];
}

/** The names are shown where they are few, and what they lack where that differs. */
function renderObstacle(why: string, findings: readonly Finding[]): string[] {
  const lacking = new Set(findings.flatMap(({ lacking }) => lacking ?? []));
  const names = findings.length <= mostShown ? findings.map(({ name }) => name) : [];
  const named = lacking.size > 0 ? [...lacking] : names;
  const [first = "", ...others] = indent(
    [why, ...(named.length > 0 ? [named.join(", ")] : [])].join(": "),
    8,
  );
  return [`  ${`${findings.length}`.padStart(4)}  ${first.trimStart()}`, ...others];
}

/** Breaks a line to the width of a terminal, with spaces before it, and before the lines that it goes on in. */
function indent(text: string, spaces: number, more = 0): string[] {
  return wrapText(text, terminalWidth - spaces - more).map(
    (line, index) => `${" ".repeat(index === 0 ? spaces : spaces + more)}${line}`,
  );
}
