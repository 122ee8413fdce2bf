import { countLevels, exitCodeOf, judgeFailureCodes, type Report } from "../frame/report.ts";
import type { Finding } from "../frame/run-cases.ts";
import { statusOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import { type ConformanceFacts, differencesOf } from "./judge-answers.ts";
import type { ConformanceRun } from "./run-conformance.ts";

type ConformanceFinding = Finding<ConformanceFacts>;

/** The part of a scenario's name that names the response: `insufficient_funds`. */
function groupOf({ name }: ConformanceFinding): string {
  return name.split(".").at(-2) ?? "";
}

/** The report on a facilitator. Its table groups scenarios by kind of response. */
export function reportConformance(
  { baseUrl, access, environment, isKit }: FoundFacilitator,
  { findings, problem }: ConformanceRun,
  { parallel }: { parallel: number },
): Report {
  const url = `${baseUrl}${access.prefix}`;
  const network = environment.network.name;
  const isRefused = isEverywhereUnauthorized(findings);
  const groups = [...Map.groupBy(findings, groupOf), ["all", findings] as const];
  const { good, wrong, differs, kit, not_run, not_judged } = countLevels(findings);
  return {
    title: `x402 conformance of ${url} on ${network}`,
    about: [
      `Compared: ${isKit ? "headers and bodies, to the letter" : "status, verdict and reason; messages and headers are its own"}`,
      ...(parallel === 1 ? [] : [`Scenarios at a time: ${parallel}`]),
    ],
    noun: "scenario",
    findings,
    table: {
      columns: ["scenarios", ...tableColumns.map(([right]) => ({ right }))],
      rows: groups.map(([group, of]) => {
        const counts = countLevels(of);
        return [group, ...tableColumns.map(([, level]) => `${counts[level]}`)];
      }),
    },
    advice: isRefused
      ? "Every failure is a 401. Is the API key one of this facilitator? Set X402_API_KEY."
      : undefined,
    problem,
    exitCode: isRefused
      ? judgeFailureCodes.failed
      : exitCodeOf({ findings: findings.filter(isKnown), problem }),
    json: {
      facilitator: url,
      network,
      compared: isKit ? "everything" : "contract",
      passed: good,
      failed: wrong + differs,
      wrong,
      differs,
      kitOnly: kit,
      notRun: not_run + not_judged,
      ...(problem !== undefined && { couldNotJudge: problem }),
      scenarios: findings.map(describe),
    },
  };

  /** If the facilitator stopped answering, unanswered scenarios say nothing. */
  function isKnown({ facts }: ConformanceFinding): boolean {
    const hasFacts = facts?.compared !== undefined || (facts?.contradictions.length ?? 0) > 0;
    return problem === undefined || hasFacts;
  }
}

const tableColumns = [
  ["passed", "good"],
  ["wrong", "wrong"],
  ["differs", "differs"],
  ["kit only", "kit"],
  ["not run", "not_run"],
] as const;

function describe({
  name,
  situation: means,
  facts,
  notes,
  lacking,
  level,
  rule,
  tookMs,
}: ConformanceFinding) {
  if (facts === undefined) return { name, means, outcome: "not_run", why: notes.join("; "), lacking };
  if (level === "good") return { name, means, outcome: "passed", tookMs };
  const status = statusOf(facts.compared?.actual);
  const differences = differencesOf(facts);
  return { name, means, outcome: "failed", tookMs, status, level, rule, differences };
}

function isEverywhereUnauthorized(findings: readonly ConformanceFinding[]): boolean {
  const failed = findings.filter(({ facts, level }) => facts !== undefined && level !== "good");
  return failed.length > 0 && failed.every(({ facts }) => statusOf(facts?.compared?.actual) === 401);
}

/** The report if nothing answers, or what answers is not a facilitator. */
export function reportNoFacilitator(url: string, problem: string): Report {
  return {
    title: `x402 conformance of ${url}`,
    noun: "scenario",
    findings: [],
    table: { columns: [], rows: [] },
    problem,
    exitCode: judgeFailureCodes.failed,
    json: { facilitator: url, couldNotJudge: problem },
  };
}

/** The milliseconds between two progress lines; a run against a public chain takes minutes. */
const progressEveryMs = 5_000;

/** Returns a function that takes each finding and prints progress every few seconds. `now` is a clock in milliseconds. */
export function createProgress(
  all: number,
  print: (text: string) => void,
  now = () => performance.now(),
): (finding: Pick<Finding, "level">) => void {
  const findings: Pick<Finding, "level">[] = [];
  let last = now();
  return (finding) => {
    findings.push(finding);
    if (now() - last < progressEveryMs) return;
    last = now();
    const { wrong, differs } = countLevels(findings);
    print(`${findings.length} of ${all} scenarios: ${wrong} wrong, ${differs} differ`);
  };
}
