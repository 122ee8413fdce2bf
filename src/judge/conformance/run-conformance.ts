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
import type { InvalidReason } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { inParallel } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";
import { type Classified, type Comparison, classifyDifference, compareExactly } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
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

/** The result of a scenario. */
export type ConformanceResult = { scenario: ScenarioRow } & (
  | { outcome: "passed"; tookMs: number }
  | ({ outcome: "failed"; tookMs: number; differences: readonly Difference[] } & Classified)
  | ({ outcome: "not_run" } & Obstacle)
);

/** After this many requests without an answer, the rest are not sent. */
const mostUnanswered = 3;

/** Longer waits mean daily budgets, not rate limits. */
const mostRetryAfterSeconds = 15;
const mostRetries = 5;

/**
 * Runs scenarios against a facilitator, as far as possible, and returns their results in the same order.
 *
 * @param parallel how many at a time; one by default
 */
export async function runConformance(
  facilitator: FoundFacilitator,
  scenarios: readonly ScenarioRow[],
  { parallel = 1 }: { parallel?: number } = {},
): Promise<readonly ConformanceResult[]> {
  const { baseUrl, access, environment, compare, isKit } = facilitator;
  let unanswered = 0;

  async function run(scenario: ScenarioRow): Promise<ConformanceResult> {
    const obstacle = whyNotRun(scenario, facilitator);
    if (obstacle !== undefined) return { scenario, outcome: "not_run", ...obstacle };
    if (unanswered >= mostUnanswered) {
      return { scenario, outcome: "not_run", why: "the facilitator does not answer any more" };
    }
    const from = performance.now();
    const answers: FixtureAnswer[] = [];
    let compared: { expected: FixtureAnswer; actual: FixtureAnswer } | undefined;
    const send = async (request: FixtureRequest) => {
      const answer = await sendWithRetries(baseUrl, adaptRequest(request, access));
      answers.push(answer);
      return answer;
    };
    const follow: Comparison = (expected, actual) => {
      compared = { expected, actual };
      return compare(expected, actual);
    };
    try {
      const differences = await runScenario(scenario, { environment, send }, follow);
      const tookMs = performance.now() - from;
      if (differences.length > 0 && !isKit && lacksApproval(scenario, compared?.actual)) {
        return { scenario, outcome: "not_run", why: "needs a payer who has approved Permit2 on the token" };
      }
      return differences.length === 0
        ? { scenario, outcome: "passed", tookMs }
        : { scenario, outcome: "failed", tookMs, ...classify(), differences };
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      unanswered++;
      const cause = error.cause instanceof Error ? error.cause.message : error.message;
      const differences = [{ at: "answer", expected: "one", got: `none: ${cause}` }];
      const tookMs = performance.now() - from;
      return { scenario, outcome: "failed", tookMs, level: "wrong", differences };
    }

    function classify(): Classified {
      // A facilitator of this kit must follow the table exactly.
      if (isKit || compared === undefined) return { level: "wrong" };
      return classifyDifference(scenario, compared.expected, compared.actual, answers.slice(0, -1));
    }
  }

  return inParallel(scenarios, parallel, run);
}

/** Whether a facilitator says that the payer has not approved Permit2, in a scenario that is not about that. */
function lacksApproval({ situation }: ScenarioRow, answer: FixtureAnswer | undefined): boolean {
  const unapproved: InvalidReason = "permit2_allowance_required";
  if (answer?.kind !== "json" || situation.startsWith(unapproved)) return false;
  const { invalidReason, errorReason } = membersOf(answer.body);
  return invalidReason === unapproved || errorReason === unapproved;
}

/** Sends a request again, after its Retry-After, while the facilitator answers that the rate is exceeded. */
async function sendWithRetries(baseUrl: string, request: FixtureRequest): Promise<FixtureAnswer> {
  for (let retries = 0; ; retries++) {
    const answer = await sendRequest(baseUrl, request);
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
  const { environment, access, isKit, hasFunds, hasBlacklist, unfitPayers, versions, uptoSubmitter } =
    facilitator;
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
  const payer = payers.find((name) => name !== "funded" && name !== "empty");
  if (payer !== undefined) return { why: "needs a test payer that only local chains have", lacking: payer };
  if (!hasFunds && (outcome.kind === "success" || cause.by === "requests")) {
    return { why: "needs a payer who has money: set PAYER_PRIVATE_KEY" };
  }
  // Other scenarios about times have minutes of margin.
  if (scenario.name.endsWith(".expires_too_soon")) {
    return { why: "needs the time of the chain to the second" };
  }
  return undefined;
}
