import type { Column } from "../../util/text.ts";
import { type Finding, type Level, levels } from "./run-cases.ts";

/** The findings about a program, for reports in every format. */
export type Report = {
  /** The program and where it was judged. */
  title: string;
  /** How it was judged, one line each. */
  about?: readonly string[];
  findings: readonly Finding[];
  table: { columns: readonly Column[]; rows: readonly (readonly string[])[] };
  /** The word for a case in this report: `case`, `scenario`. */
  noun: string;
  /** The heading of cases that differ; the default one if left out. */
  differs?: string;
  advice?: string | undefined;
  /** Why it could not be judged, or not completely. */
  problem?: string | undefined;
  exitCode: number;
  json: object;
};

/** Exit codes of the judges of clients, shops and facilitators. The worst finding decides. */
const exitCodes = { good: 0, wrong: 1, differs: 2, notJudged: 3, usage: 4 } as const;

/** Exit codes when a judge cannot begin. */
export const judgeFailureCodes = { usage: exitCodes.usage, failed: exitCodes.notJudged };

/** The exit codes as text for `--help`. */
export const judgeExitCodesText =
  "0 all is good; 1 something is wrong; 2 money and goods are right, but answers differ from what is due; 3 it could not be judged, or not to the end; 4 the command line is wrong. Reports are written in each case but the last.";

/** The exit code of a report. A case that could not be judged outranks one that differs, because it may be wrong. */
export function exitCodeOf({ findings, problem }: Pick<Report, "findings" | "problem">): number {
  const counts = countLevels(findings);
  if (counts.wrong > 0) return exitCodes.wrong;
  if (problem !== undefined || counts.not_judged > 0 || !findings.some(hasRun)) return exitCodes.notJudged;
  return counts.differs > 0 ? exitCodes.differs : exitCodes.good;
}

/** The number of findings at each level. */
export function countLevels(findings: readonly Pick<Finding, "level">[]): Record<Level, number> {
  const counts = { wrong: 0, not_judged: 0, differs: 0, kit: 0, not_run: 0, good: 0 };
  for (const { level } of findings) counts[level]++;
  return counts;
}

export function worstFirst<F extends Finding>(findings: readonly F[]): F[] {
  return findings.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}

/** Returns true if the case was run. */
export function hasRun({ level }: Pick<Finding, "level">): boolean {
  return level !== "not_run" && level !== "not_judged";
}

/** Returns true if the case ran and its verdict is not good. */
export function isBad(finding: Finding): boolean {
  return hasRun(finding) && finding.level !== "good";
}

/** The reason why a case was not run, on one line. */
export function obstacleOf({ notes, lacking }: Finding): string {
  return [...notes, ...(lacking === undefined ? [] : [lacking])].join(": ");
}

/** The lines below a finding's verdict. */
export function describeFinding({ situation, seen, notes, good }: Finding): string[] {
  return [situation, ...seen, ...notes, ...(good === undefined ? [] : [`Good: ${good}`])];
}

/** Summarizes how many cases ran and with what result. */
export function summarize({ findings, noun, advice, problem }: Report): string[] {
  const { good, wrong, differs, kit } = countLevels(findings);
  const [run, others] = [good + wrong + differs, findings.length - findings.filter(hasRun).length];
  const result =
    run === 0
      ? `No ${noun} was judged.`
      : wrong + differs > 0
        ? `Of ${counted(run, noun)} ${wrong} ${wrong === 1 ? "is" : "are"} wrong and ${differs} ${differs === 1 ? "differs" : "differ"}.`
        : run === 1
          ? `The one ${noun} is good.`
          : `All ${counted(run, noun)} are good.`;
  const more = [
    ...(kit === 0
      ? []
      : [`${kit} ${kit === 1 ? "is a choice" : "are choices"} of this kit, and not counted.`]),
    ...(others === 0 ? [] : [`${others} could not be run, for the reasons above.`]),
  ];
  return [
    [result, ...more].join(" "),
    ...(problem === undefined ? [] : [`The run is not complete: ${problem}.`]),
    ...(advice === undefined ? [] : [advice]),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
