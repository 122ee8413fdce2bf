import { setTimeout } from "node:timers/promises";
import { usualAmount } from "../../fixtures/cases/payment-spec.ts";
import type { Scenario, ScenarioFault, ScenarioPlan } from "../../fixtures/cases/scenario.ts";
import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import {
  type Difference,
  type FixtureAnswer,
  type FixtureRequest,
  isBegun,
} from "../../fixtures/engine/answer.ts";
import type { ScenarioEnvironment } from "../../fixtures/engine/scenario-environment.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { InvalidReason } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { inParallel } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";
import {
  type Classified,
  type Comparison,
  classifyDifference,
  compareExactly,
  type SameNetwork,
} from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import type { Contradiction, Exchange } from "./moved-money.ts";
import { adaptRequest, sendRequest } from "./send-request.ts";

/** A fault that is in effect. */
export type ArrangedFault = {
  /** Sends the request while the fault lasts. */
  send(request: FixtureRequest): Promise<FixtureAnswer>;
  /** Ends the fault, before the same request is sent again. */
  end?(): Promise<void>;
};

/** A facilitator that scenarios are run against. */
export type ConformanceTarget = {
  environment: ScenarioEnvironment;
  send(request: FixtureRequest): Promise<FixtureAnswer>;
  /** Causes a fault; without this function, only scenarios without faults can be run. */
  arrange?(fault: ScenarioFault, plan: ScenarioPlan): Promise<ArrangedFault>;
};

/**
 * Runs a scenario: its earlier requests, its request, and for some scenarios that request again.
 *
 * @returns where the answers differ from the expected ones
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

export type ConformanceResult = { scenario: ScenarioRow } & (
  | { outcome: "passed"; tookMs: number }
  | ({
      outcome: "failed";
      tookMs: number;
      differences: readonly Difference[];
      /** That of the answer; undefined where none came. */
      status?: number | undefined;
    } & Classified)
  | ({ outcome: "not_run" } & Obstacle)
);

/** The results of a run, in the order of its scenarios. */
export type ConformanceRun = {
  results: readonly ConformanceResult[];
  /** Why the run is not complete; undefined where it is. */
  problem: string | undefined;
};

export type RunOptions = {
  /** How many scenarios run at a time; one by default. */
  parallel?: number;
  /** How long an answer may take. */
  timeoutMs?: number | undefined;
  /** Called with each result as it comes. */
  onResult?: (result: ConformanceResult) => void;
};

/** After this many requests in succession without an answer, the rest are not sent. */
const mostUnanswered = 3;

/** After this many scenarios in succession that fail by the same answer, the others are not run. */
const mostEqualFailures = 10;

/** Longer waits mean daily budgets, not rate limits. */
const mostRetryAfterSeconds = 15;
const mostRetries = 5;

/**
 * Runs scenarios against a facilitator, as far as possible. What is valid is verified twice. Where the chain can be asked, its
 * transfers are compared with the answers at the end.
 */
export async function runConformance(
  facilitator: FoundFacilitator,
  scenarios: readonly ScenarioRow[],
  { parallel = 1, timeoutMs, onResult = () => {} }: RunOptions = {},
): Promise<ConformanceRun> {
  const { baseUrl, access, environment, compare, isKit, money } = facilitator;
  const exchanges = new Map<ScenarioRow, Exchange[]>();
  const stop = createStop();

  async function run(scenario: ScenarioRow): Promise<ConformanceResult> {
    const obstacle = whyNotRun(scenario, facilitator);
    if (obstacle !== undefined) return { scenario, outcome: "not_run", ...obstacle };
    if (stop.reason() !== undefined) return { scenario, outcome: "not_run", why: stop.reason() ?? "" };
    const from = performance.now();
    const sent: Exchange[] = [];
    exchanges.set(scenario, sent);
    let compared: { expected: FixtureAnswer; actual: FixtureAnswer } | undefined;
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
      stop.note(undefined);
      const cause = error.cause instanceof Error ? error.cause.message : error.message;
      const none = [{ at: "answer", expected: "one", got: `none: ${cause}` }];
      const tookMs = performance.now() - from;
      return { scenario, outcome: "failed", tookMs, level: "wrong", differences: none };
    }
    const tookMs = performance.now() - from;
    if (differences.length === 0) {
      stop.note("passed");
      return { scenario, outcome: "passed", tookMs };
    }
    const why = await whyNotJudged(scenario, compared?.actual, facilitator);
    if (why !== undefined) return { scenario, outcome: "not_run", why };
    const classified = classify();
    const actual = compared?.actual;
    const status = actual && isBegun(actual) ? actual.status : undefined;
    // Choices of this kit stand between others, and say nothing about them.
    if (classified.level !== "kit" || status !== 200) {
      stop.note(classified.level === "wrong" || status !== 200 ? summaryOf(actual) : "passed");
    }
    return { scenario, outcome: "failed", tookMs, status, ...classified, differences };

    /** A valid payment must stay valid, since verify moves nothing. */
    async function verifyAgain(): Promise<readonly Difference[]> {
      const [last] = sent.slice(-1);
      const isValid = scenario.operation === "verify" && scenario.outcome.kind === "success";
      if (!isValid || last === undefined || compared === undefined) return [];
      const found = follow(compared.expected, await send(last.request));
      return found.map(({ at, ...rest }) => ({ at: `verified again: ${at}`, ...rest }));
    }

    function classify(): Classified {
      // A facilitator of this kit must follow the table exactly.
      if (isKit || compared === undefined) return { level: "wrong" };
      const before = sent.slice(0, -1).map(({ answer }) => answer);
      return classifyDifference(scenario, compared.expected, compared.actual, before, isSameNetwork);
    }
  }

  const isSameNetwork: SameNetwork = (one, other) =>
    environment.networks.some(({ name, caip2 }) =>
      [one, other].every((text) => [name, caip2].includes(text)),
    );

  const results = await inParallel(scenarios, parallel, async (scenario) => {
    const result = await run(scenario);
    onResult(result);
    return result;
  });
  if (money === undefined) return { results, problem: stop.reason() };
  try {
    const found = await money.judge(scenarios.map((scenario) => exchanges.get(scenario) ?? []));
    const judged = results.map((result, index) => addContradictions(result, found[index] ?? []));
    return { results: judged, problem: stop.reason() };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { results, problem: `the transfers could not be compared with the answers: ${error.message}` };
  }
}

/** When a run ends early. */
function createStop() {
  let unanswered = 0;
  let last: string | undefined;
  let equal = 0;
  let reason: string | undefined;
  return {
    reason: () => reason,
    /** @param summary of the answer that a scenario failed by, "passed", or undefined where none came */
    note(summary: string | undefined): void {
      unanswered = summary === undefined ? unanswered + 1 : 0;
      equal = summary !== undefined && summary !== "passed" && summary === last ? equal + 1 : 1;
      last = summary;
      if (unanswered >= mostUnanswered) reason ??= "the facilitator does not answer any more";
      if (equal >= mostEqualFailures && summary !== "passed" && summary !== undefined) {
        reason ??= `stopped after ${mostEqualFailures} equal failures in succession: ${summary}`;
      }
    },
  };
}

/** A key for answers that are equal except for texts and hashes. */
function summaryOf(answer: FixtureAnswer | undefined): string {
  if (answer === undefined || !isBegun(answer)) return "no answer";
  const { isValid, success, invalidReason, errorReason } = membersOf(
    answer.kind === "json" ? answer.body : undefined,
  );
  const members = Object.entries({ isValid, success, invalidReason, errorReason }).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [`${name} ${String(value).slice(0, 80)}`],
  );
  return [`status ${answer.status}`, ...members].join(", ");
}

/** Adds what the chain says to the result of a scenario: it outweighs any answer. */
function addContradictions(result: ConformanceResult, found: readonly Contradiction[]): ConformanceResult {
  const [first] = found;
  if (first === undefined) return result;
  const { scenario } = result;
  const before = result.outcome === "failed" ? result.differences : [];
  const differences = [...found.map(({ difference }) => difference), ...before];
  const tookMs = result.outcome === "not_run" ? 0 : result.tookMs;
  const status = result.outcome === "failed" ? result.status : undefined;
  return { scenario, outcome: "failed", tookMs, status, level: "wrong", rule: first.rule, differences };
}

/** Sends a request again, after its Retry-After, while the facilitator answers that the rate is exceeded. */
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

/** How long to wait where a rate was exceeded. */
function retryAfterOf(answer: FixtureAnswer): number | undefined {
  if (!isBegun(answer) || answer.status !== 429) return undefined;
  const seconds = Number(answer.headers["retry-after"] ?? Number.NaN);
  return seconds >= 0 && seconds <= mostRetryAfterSeconds ? seconds : undefined;
}

/** Why a scenario is not run; `lacking` names what this scenario lacks. */
export type Obstacle = { why: string; lacking?: string };

/** Situations that depend on the API key. */
const aboutKeys = /^(unauthorized|forbidden)\.|^success\.(bearer|default_authentication)$/;

/** Why a scenario cannot be run against a facilitator from outside; undefined when it can. */
function whyNotRun(scenario: ScenarioRow, facilitator: FoundFacilitator): Obstacle | undefined {
  const { environment, access, isKit, hasBlacklist, unfitPayers, versions, uptoSubmitter } = facilitator;
  const { cause, outcome, x402Version } = scenario;
  if (!versions.has(x402Version)) {
    return { why: `the facilitator lists no version ${x402Version} of the protocol for the network` };
  }
  if (cause.by === "fault") {
    return { why: "needs a fault around the facilitator", lacking: cause.fault };
  }
  const cannot = scenario.cannotRun(environment);
  if (cannot !== undefined) return { why: cannot };
  const { keys, payers, methods } = scenario.needs(environment);
  if (methods.includes("upto-permit2")) {
    if (uptoSubmitter === undefined) return { why: "the facilitator lists no scheme upto for the network" };
    if (!sameAddress(uptoSubmitter, environment.network.facilitatorContract)) {
      return { why: "needs a facilitator that is paid where it submits payments of scheme upto from" };
    }
  }
  if (!hasBlacklist && (payers.includes("blacklisted") || keys.includes("blockedRecipient"))) {
    return { why: "needs a token with a blacklist" };
  }
  const unfit = payers.find((name) => unfitPayers.has(name));
  if (unfit !== undefined) {
    return { why: `the payer ${unfit} holds ${unfitPayers.get(unfit)}: run ${self} reset` };
  }
  if (isKit) return undefined;
  if (access.auth === "none" && aboutKeys.test(scenario.situation)) {
    return { why: "is about API keys, and none is sent" };
  }

  const key = keys.find((name) => name !== "local" && name !== "unknown");
  if (key !== undefined) return { why: "needs an API key that only this kit has", lacking: key };
  const payer = payers.find(
    (name) => name !== "funded" && name !== "empty" && !facilitator.testPayers.has(name),
  );
  if (payer !== undefined) return { why: "needs a test payer that only local chains have", lacking: payer };
  if (facilitator.lacksFunds !== undefined && (outcome.kind === "success" || cause.by === "requests")) {
    return { why: `needs a payer who has money: ${facilitator.lacksFunds}` };
  }
  // Other scenarios about times have minutes of margin.
  if (scenario.name.endsWith(".expires_too_soon")) {
    return { why: "needs the time of the chain to the second" };
  }
  return undefined;
}

/**
 * Why an answer says nothing about the facilitator, but about the payer: that has not approved Permit2, or too little money.
 * Undefined where the answer is to be judged.
 */
async function whyNotJudged(
  scenario: ScenarioRow,
  answer: FixtureAnswer | undefined,
  { environment, isKit, money }: FoundFacilitator,
): Promise<string | undefined> {
  if (isKit || answer?.kind !== "json") return undefined;
  const { invalidReason, errorReason } = membersOf(answer.body);
  const reason = String(invalidReason ?? errorReason ?? "");
  const isAbout = (other: InvalidReason) => scenario.situation.startsWith(other);
  const unapproved: InvalidReason = "permit2_allowance_required";
  if (reason === unapproved && !isAbout(unapproved)) {
    return "needs a payer who has approved Permit2 on the token";
  }
  const isExpected = isAbout("insufficient_funds") || isAbout("permit2_insufficient_balance");
  const isOfFunded = scenario.needs(environment).payers.includes("funded");
  if (!/insufficient_?(funds|balance)/i.test(reason) || isExpected || !isOfFunded) return undefined;
  const { address } = environment.payers?.funded ?? testPayers.funded;
  if (money === undefined) {
    return "the facilitator says that the payer lacks the money; with --rpc-url it is judged whether that is true";
  }
  return (await money.balanceOf(address)) < usualAmount ? "the payer's money is used up" : undefined;
}
