import { escapeControls, renderTable, terminalWidth, wrapText } from "../../util/text.ts";
import { hasRun, type Report, summarize } from "./report.ts";
import type { Finding } from "./run-cases.ts";

/** The levels that are described in detail, with their headings. */
const headings = {
  wrong: "Wrong",
  differs: "Differs: money and verdicts are right; how it is said is not as it should be, or is left open",
  kit: "Kit only: choices of this kit, which other facilitators need not share",
} as const;

/** Many bad findings usually share a cause, so after this many only the names are listed. */
const mostShown = 40;

/** The report for a person: a table, the bad cases with their events, then the cases that were not run and why. */
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

/** Groups equal findings: a program that deviates once usually deviates the same way in every case. */
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

/** Lists what the cases lack if known, otherwise their names if there are not too many. */
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

/** Wraps a line to the terminal width, indented by `spaces`; continuation lines get `more` on top. */
function indent(text: string, spaces: number, more = 0): string[] {
  return wrapText(text, terminalWidth - spaces - more).map(
    (line, index) => `${" ".repeat(index === 0 ? spaces : spaces + more)}${line}`,
  );
}
