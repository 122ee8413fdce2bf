import { setTimeout } from "node:timers/promises";
import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import {
  type Difference,
  type FixtureAnswer,
  type FixtureRequest,
  isBegun,
} from "../../fixtures/engine/answer.ts";
import { KitError } from "../../util/errors.ts";
import { inParallel } from "../../util/in-parallel.ts";
import { adaptRequest } from "./access.ts";
import type { Comparison } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import { type Classified, classifyDifference } from "./level.ts";
import { runScenario } from "./run-scenario.ts";
import { sendRequest } from "./send-request.ts";
import { type Obstacle, whyNotRun } from "./why-not-run.ts";

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
