import type { Scenario, ScenarioFault, ScenarioPlan } from "../../fixtures/cases/scenario.ts";
import type { Difference, FixtureAnswer, FixtureRequest } from "../../fixtures/engine/answer.ts";
import type { ScenarioEnvironment } from "../../fixtures/engine/environment.ts";
import { type Comparison, compareExactly } from "./compare.ts";

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
