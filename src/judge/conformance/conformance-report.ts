import { type Difference, differenceLine } from "../../fixtures/engine/answer.ts";
import { escapeControls, renderTable, wrapText } from "../../util/text.ts";
import { judgeExitCodes } from "../report/judgment.ts";
import { type JunitCase, renderJunitXml } from "../report/render-files.ts";
import type { Level } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import type { ConformanceResult, ConformanceRun, Obstacle } from "./run-conformance.ts";

type Tally = { passed: number; wrong: number; differs: number; kit: number; notRun: number };

/** Counts scenarios by result. */
export function tally(results: readonly ConformanceResult[]): Tally {
  const tally: Tally = { passed: 0, wrong: 0, differs: 0, kit: 0, notRun: 0 };
  for (const result of results) tally[placeOf(result)]++;
  return tally;
}

function placeOf(result: ConformanceResult): keyof Tally {
  if (result.outcome === "failed") return result.level;
  return result.outcome === "passed" ? "passed" : "notRun";
}

/** The part of a scenario's name that says what the answer is: `insufficient_funds`. */
function groupOf({ scenario }: ConformanceResult): string {
  return scenario.name.split(".").at(-2) ?? "";
}

/** The report as data. */
export function describeResults(
  { baseUrl, access, environment, isKit }: FoundFacilitator,
  { results, problem }: ConformanceRun,
) {
  const { passed, wrong, differs, kit, notRun } = tally(results);
  return {
    facilitator: `${baseUrl}${access.prefix}`,
    network: environment.network.name,
    compared: isKit ? "everything" : "contract",
    passed,
    failed: wrong + differs,
    wrong,
    differs,
    kitOnly: kit,
    notRun,
    ...(problem !== undefined && { couldNotJudge: problem }),
    scenarios: results.map(({ scenario, ...result }) => {
      const { name, means } = scenario;
      if (result.outcome === "not_run") return { name, means, ...result };
      return { name, means, ...result, tookMs: Math.round(result.tookMs) };
    }),
  };
}

/** Why a scenario was not run, on one line. */
function obstacleLine({ why, lacking }: Obstacle): string {
  return lacking === undefined ? why : `${why}: ${lacking}`;
}

/** A completely different answer has many differences; the first ones are enough. */
const mostDifferences = 6;

/** Many failures usually have one cause, so only the names of further ones are shown. */
const mostFailures = 20;

/** Longer than any sentence of the service. */
const mostCharacters = 300;

type Failure = Extract<ConformanceResult, { outcome: "failed" }>;

const wrong = "Wrong: the public specification decides these payments otherwise";

/** Headings for results that are not wrong, by kind of difference. */
const headings: readonly [heading: string, level: Level, isVerdict: boolean][] = [
  ["Differs: the verdict is right; the specification leaves open how it is said", "differs", true],
  ["No verdict: the specification leaves open with which status", "differs", false],
  ["Kit only: choices of this kit, which other facilitators need not share", "kit", true],
  ["Kit only, without a verdict", "kit", false],
];

/** The report as text: a table by kind of answer, then each failure, then the scenarios that were not run and why. */
export function renderConformance(
  { baseUrl, access, environment, isKit }: FoundFacilitator,
  { results, problem }: ConformanceRun,
  { parallel }: { parallel: number },
): string {
  const counts = tally(results);
  const compared = isKit
    ? "headers and bodies, to the letter"
    : "status, verdict and reason; messages and headers are its own";
  const cells = (of: Tally) =>
    (isKit ? [of.passed, of.wrong, of.notRun] : [of.passed, of.wrong, of.differs, of.kit, of.notRun]).map(
      String,
    );
  const columns = isKit
    ? ["passed", "failed", "not run"]
    : ["passed", "wrong", "differs", "kit only", "not run"];
  const groups = [...Map.groupBy(results, groupOf)].map(([group, of]) => [group, ...cells(tally(of))]);
  const failures = results.filter((result) => result.outcome === "failed");
  const skipped = Map.groupBy(
    results.filter((result) => result.outcome === "not_run"),
    ({ why }) => why,
  );
  return [
    `Conformance of ${baseUrl}${access.prefix} on ${environment.network.name}`,
    `Compared: ${compared}`,
    ...(parallel === 1 ? [] : [`Scenarios at a time: ${parallel}`]),
    "",
    renderTable(
      ["scenarios", ...columns.map((right) => ({ right }))],
      [...groups, ["all", ...cells(counts)]],
    ),
    ...renderWrong(
      isKit ? "Failed" : wrong,
      failures.filter(({ level }) => level === "wrong"),
    ),
    ...headings.flatMap(([heading, level, isVerdict]) =>
      renderKinds(
        heading,
        failures.filter((failure) => failure.level === level && (failure.status === 200) === isVerdict),
      ),
    ),
    ...(skipped.size === 0 ? [] : ["", "Not run"]),
    ...[...skipped].flatMap(([why, ofWhy]) => renderObstacle(why, ofWhy)),
    "",
    summarize(counts, isKit, [...skipped.keys()]),
    ...(problem === undefined ? [] : [`The run is not complete: ${problem}.`]),
    ...(isEverywhereUnauthorized(failures)
      ? ["Every failure is a 401. Is the API key one of this facilitator? Set X402_API_KEY."]
      : []),
  ].join("\n");
}

/** The exit code of a run; see {@link judgeExitCodes}. */
export function exitCodeOf({ results, problem }: ConformanceRun): number {
  const { passed, differs, kit } = tally(results);
  const failures = results.filter((result) => result.outcome === "failed");
  // Of one that does not answer any more nothing is known.
  const isKnown = ({ level, status, rule }: Failure) =>
    level === "wrong" && (problem === undefined || status !== undefined || rule !== undefined);
  if (isEverywhereUnauthorized(failures)) return judgeExitCodes.notJudged;
  if (failures.some(isKnown)) return judgeExitCodes.wrong;
  if (problem !== undefined || passed + differs + kit === 0) return judgeExitCodes.notJudged;
  return differs > 0 ? judgeExitCodes.differs : judgeExitCodes.good;
}

function renderWrong(heading: string, failures: readonly Failure[]): string[] {
  if (failures.length === 0) return [];
  return [
    "",
    heading,
    ...failures.slice(0, mostFailures).flatMap(renderFailure),
    ...failures.slice(mostFailures).map(({ scenario }) => `  ${scenario.name}`),
  ];
}

/** Groups equal differences: a facilitator with another name for a reason uses it everywhere. */
function renderKinds(heading: string, failures: readonly Failure[]): string[] {
  if (failures.length === 0) return [];
  const kinds = Map.groupBy(failures, ({ differences }) =>
    differences.slice(0, mostDifferences).flatMap(renderDifference).join("\n"),
  );
  return [
    "",
    heading,
    ...[...kinds]
      .sort(([, one], [, other]) => other.length - one.length)
      .flatMap(([kind, of]) => [
        kind,
        ...wrapText(`in ${of.map(({ scenario }) => scenario.name).join(", ")}`, 92).map(
          (line) => `          ${line}`,
        ),
      ]),
  ];
}

function renderFailure({ scenario, rule, differences }: Failure): string[] {
  const more = differences.length - mostDifferences;
  return [
    `  ${scenario.name}`,
    `    ${scenario.means}`,
    ...(rule === undefined
      ? []
      : [`    Specification v${scenario.x402Version}, ${rule.section}: ${rule.says}`]),
    ...differences.slice(0, mostDifferences).flatMap(renderDifference),
    ...(more > 0 ? [`      and ${more} more`] : []),
  ];
}

function isEverywhereUnauthorized(failures: readonly Failure[]): boolean {
  return failures.length > 0 && failures.every(({ status }) => status === 401);
}

function renderObstacle(why: string, results: readonly Extract<ConformanceResult, { outcome: "not_run" }>[]) {
  const lacking = [...new Set(results.flatMap(({ lacking }) => lacking ?? []))];
  const reason = lacking.length === 0 ? why : `${why}: ${lacking.join(", ")}`;
  const [first = "", ...others] = wrapText(reason, 72);
  return [`  ${`${results.length}`.padStart(4)}  ${first}`, ...others.map((line) => `        ${line}`)];
}

function renderDifference({ at, expected, got }: Difference): string[] {
  // Names and values of members come from the facilitator, and must not look like lines of the report.
  return [`      ${at}`, `        - ${shorten(expected)}`, `        + ${shorten(got)}`].map(escapeControls);
}

function shorten(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

function summarize(
  { passed, wrong, differs, kit, notRun }: Tally,
  isKit: boolean,
  whyNot: readonly string[],
): string {
  const run = passed + wrong + differs;
  if (run + kit === 0) return "Nothing was run.";
  const others = [
    ...(kit === 0 ? [] : [`${kit} are choices of this kit, and not counted.`]),
    ...(notRun === 0 ? [] : [`${notRun} could not be run (${summarizeReasons(whyNot)}).`]),
  ];
  if (run === 0) return ["Nothing that the specification decides was run.", ...others].join(" ");
  if (wrong + differs === 0) return [`All ${passed} scenarios passed.`, ...others].join(" ");
  const what = isKit
    ? `${wrong} of ${run} scenarios failed (- expected, + got).`
    : `Of ${run} scenarios ${wrong} are wrong and ${differs} differ (- expected, + got).`;
  return [what, ...others].join(" ");
}

function summarizeReasons([first = "", ...others]: readonly string[]): string {
  if (others.length === 0) return first;
  return `${first}, and ${others.length} other ${others.length === 1 ? "reason" : "reasons"}, above`;
}

/** The report as JUnit XML, which CI systems read: a suite for each operation and version. */
export function renderJunit(
  { baseUrl, access }: FoundFacilitator,
  { results }: Pick<ConformanceRun, "results">,
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
  // The specification leaves it open, so that no build breaks by it.
  if (result.level === "differs")
    return { ...common, tookMs, notes: [`differs: ${scenario.means}`, ...lines] };
  return { ...common, tookMs, failure: { type: result.level, message, lines: [scenario.means, ...lines] } };
}

/** The report where there is nothing to report on: nothing answers, or what answers is no facilitator. */
export function renderJunitOfNone(url: string, error: string): string {
  const name = `x402 conformance of ${url}`;
  return renderJunitXml(
    name,
    new Map([["facilitator", [{ name, className: "facilitator", tookMs: 0, error }]]]),
  );
}

/** Between two lines of progress, in milliseconds: a run against a public chain takes minutes. */
const progressEveryMs = 5_000;

/** Takes each result as it comes, and says every few seconds how far the run is. `now` is a clock in milliseconds. */
export function createProgress(
  all: number,
  print: (text: string) => void,
  now = () => performance.now(),
): (result: ConformanceResult) => void {
  const results: ConformanceResult[] = [];
  let last = now();
  return (result) => {
    results.push(result);
    if (now() - last < progressEveryMs) return;
    last = now();
    const { wrong, differs } = tally(results);
    print(`${results.length} of ${all} scenarios: ${wrong} wrong, ${differs} differ`);
  };
}
