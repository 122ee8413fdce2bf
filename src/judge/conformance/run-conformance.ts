import { setTimeout } from "node:timers/promises";
import type { Scenario, ScenarioFault, ScenarioPlan } from "../../fixtures/cases/scenario.ts";
import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import {
  type Difference,
  type FixtureAnswer,
  type FixtureRequest,
  isBegun,
} from "../../fixtures/engine/answer.ts";
import type { ScenarioEnvironment } from "../../fixtures/engine/scenario-environment.ts";
import { KitError } from "../../util/errors.ts";
import { type Finding, NotRun, runCases } from "../frame/run-cases.ts";
import { type Comparison, compareExactly, memberOf, statusOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import { type ConformanceFacts, createConformanceJudge } from "./judge-answers.ts";
import type { Exchange } from "./moved-money.ts";
import { requireJudgeable, requireRunnable } from "./obstacles.ts";
import { adaptRequest, sendRequest } from "./send-request.ts";

export type ArrangedFault = {
  /** Sends the request while the fault lasts. */
  send(request: FixtureRequest): Promise<FixtureAnswer>;
  /** Ends the fault, before the same request is sent again. */
  end?(): Promise<void>;
};

export type ConformanceTarget = {
  environment: ScenarioEnvironment;
  send(request: FixtureRequest): Promise<FixtureAnswer>;
  /** Causes a fault. Without this function, only scenarios without faults can be run. */
  arrange?(fault: ScenarioFault, plan: ScenarioPlan): Promise<ArrangedFault>;
};

/**
 * Runs a scenario: its earlier requests, its request, and for some scenarios that request again.
 *
 * @returns the differences between the responses and the expected ones
 */
export async function runScenario(
  scenario: Scenario,
  { environment, send, arrange }: ConformanceTarget,
  compare: Comparison = compareExactly,
): Promise<readonly Difference[]> {
  const { cause } = scenario;
  const plan = await scenario.plan(environment);
  const { before, request, answer, again } = plan;
  for (const earlier of before) await send(earlier);
  if (cause.by === "fault" && arrange === undefined)
    throw new Error(`the fault ${cause.fault} cannot be arranged`);
  const arranged = cause.by === "fault" ? await arrange?.(cause.fault, plan) : undefined;
  const found = compare(answer, await (arranged ?? { send }).send(request));
  await arranged?.end?.();
  if (again === undefined || found.length > 0) return found;
  return compare(again, await send(request)).map(({ at, ...rest }) => ({ at: `sent again: ${at}`, ...rest }));
}

/** The findings of a run, in the order of its scenarios. */
export type ConformanceRun = {
  findings: readonly Finding<ConformanceFacts>[];
  /** Why the run is not complete; undefined if it is. */
  problem: string | undefined;
};

export type RunOptions = {
  /** How many scenarios run at a time; one by default. */
  parallel?: number;
  timeoutMs?: number | undefined;
  onFinding?: (finding: Finding<ConformanceFacts>) => void;
};

/** After this many scenarios in a row without a response, the others are not run. */
const mostUnanswered = 3;

/** After this many scenarios in a row that fail with the same response, the others are not run. */
const mostEqualFailures = 10;

/** A longer wait means a daily budget, not a rate limit. */
const mostRetryAfterSeconds = 15;
const mostRetries = 5;

/**
 * Runs scenarios against a facilitator, as far as possible. Valid payments are verified twice. If the chain can be
 * queried, its transfers are compared with the responses at the end.
 */
export async function runConformance(
  facilitator: FoundFacilitator,
  scenarios: readonly ScenarioRow[],
  { parallel = 1, timeoutMs, onFinding = () => {} }: RunOptions = {},
): Promise<ConformanceRun> {
  const { baseUrl, access, environment, compare, money } = facilitator;
  const exchanges = new Map(scenarios.map((scenario): [ScenarioRow, Exchange[]] => [scenario, []]));
  const stop = createStop();
  const judge = createConformanceJudge(facilitator);

  async function run(scenario: ScenarioRow): Promise<ConformanceFacts> {
    await requireRunnable(scenario, facilitator);
    const reason = stop.reason();
    if (reason !== undefined) throw new NotRun(reason);
    const sent = exchanges.get(scenario) ?? [];
    let compared: ConformanceFacts["compared"];
    const send = async (request: FixtureRequest) => {
      const answer = await sendWithRetries(baseUrl, adaptRequest(request, access), timeoutMs);
      sent.push({ request, answer });
      return answer;
    };
    const follow: Comparison = (expected, actual) => {
      compared = { expected, actual };
      return compare(expected, actual);
    };
    let differences: readonly Difference[];
    try {
      differences = await runScenario(scenario, { environment, send }, follow);
      if (differences.length === 0) differences = await verifyAgain();
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      const cause = error.cause instanceof Error ? error.cause.message : error.message;
      differences = [{ at: "answer", expected: "one", got: `none: ${cause}` }];
      compared = undefined;
    }
    if (differences.length > 0 && compared !== undefined) {
      await requireJudgeable(scenario, compared, facilitator);
    }
    const before = sent.slice(0, -1).map(({ answer }) => answer);
    return { scenario, differences, compared, before, contradictions: [] };

    /** A valid payment must stay valid, since verify moves nothing. */
    async function verifyAgain(): Promise<readonly Difference[]> {
      const last = sent.at(-1);
      const isValid = scenario.operation === "verify" && scenario.outcome.kind === "success";
      if (!isValid || last === undefined || compared === undefined) return [];
      const found = follow(compared.expected, await send(last.request));
      return found.map(({ at, ...rest }) => ({ at: `verified again: ${at}`, ...rest }));
    }
  }

  const findings = await runCases(
    scenarios.map((scenario) => ({
      name: scenario.name,
      suite: `${scenario.operation}, version ${scenario.x402Version}`,
      situation: scenario.means,
      run: () => run(scenario),
    })),
    judge,
    {
      atOnce: parallel,
      onFinding(finding) {
        stop.note(finding);
        onFinding(finding);
      },
    },
  );
  if (money === undefined) return { findings, problem: stop.reason() };
  try {
    const found = await money.judge(scenarios.map((scenario) => exchanges.get(scenario) ?? []));
    const judged = findings.map((finding, index) => {
      const [contradictions = [], scenario] = [found[index], scenarios[index]];
      if (contradictions.length === 0 || scenario === undefined) return finding;
      const none = { scenario, differences: [], compared: undefined, before: [] };
      const facts = { ...(finding.facts ?? none), contradictions };
      return { ...finding, ...judge(facts), facts };
    });
    return { findings: judged, problem: stop.reason() };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { findings, problem: `the transfers could not be compared with the answers: ${error.message}` };
  }
}

/** Decides when a run ends early. */
function createStop() {
  let unanswered = 0;
  let last: string | undefined;
  let equal = 0;
  let reason: string | undefined;
  return {
    reason: () => reason,
    note({ facts, level }: Finding<ConformanceFacts>): void {
      if (facts === undefined) return;
      const actual = facts.compared?.actual;
      const isDecided = level === "good" || statusOf(actual) === 200;
      // Choices of this kit appear between other scenarios, and say nothing about them.
      if (level === "kit" && isDecided) return;
      const summary = isDecided && level !== "wrong" ? "passed" : summaryOf(actual);
      unanswered = facts.compared === undefined ? unanswered + 1 : 0;
      equal = summary !== "passed" && summary === last ? equal + 1 : 1;
      last = summary;
      if (unanswered >= mostUnanswered) reason ??= "the facilitator does not answer any more";
      if (equal >= mostEqualFailures) {
        reason ??= `stopped after ${mostEqualFailures} equal failures in succession: ${summary}`;
      }
    },
  };
}

/** A key for responses that are equal except for texts and hashes. */
function summaryOf(answer: FixtureAnswer | undefined): string {
  if (answer === undefined || !isBegun(answer)) return "no answer";
  const members = ["isValid", "success", "invalidReason", "errorReason"].flatMap((name) => {
    const value = memberOf(answer, name);
    return value === undefined ? [] : [`${name} ${String(value).slice(0, 80)}`];
  });
  return [`status ${answer.status}`, ...members].join(", ");
}

/** Sends a request, and sends it again after its Retry-After as long as the facilitator answers 429. */
async function sendWithRetries(
  baseUrl: string,
  request: FixtureRequest,
  timeoutMs: number | undefined,
): Promise<FixtureAnswer> {
  for (let retries = 0; ; retries++) {
    const answer = await sendRequest(baseUrl, request, timeoutMs);
    const seconds = retryAfterOf(answer);
    if (seconds === undefined || retries === mostRetries) return answer;
    await setTimeout(1_000 * seconds);
  }
}

/** The seconds to wait after a 429; undefined for other responses, and if the wait is missing or too long. */
function retryAfterOf(answer: FixtureAnswer): number | undefined {
  if (!isBegun(answer) || answer.status !== 429) return undefined;
  const seconds = Number(answer.headers["retry-after"] ?? Number.NaN);
  return seconds >= 0 && seconds <= mostRetryAfterSeconds ? seconds : undefined;
}
