import fc from "fast-check";
import { noVerdictCases } from "../../../src/fixtures/cases/no-verdict-cases.ts";
import type { ScenarioPaymentSpec } from "../../../src/fixtures/cases/payment-spec.ts";
import { refusalCases } from "../../../src/fixtures/cases/refusal-cases.ts";
import type { ScenarioCase } from "../../../src/fixtures/cases/scenario.ts";
import { successCases } from "../../../src/fixtures/cases/success-cases.ts";
import { changesAt } from "../../../src/fixtures/cases/write-request.ts";
import type { ScenarioEnvironment } from "../../../src/fixtures/engine/scenario-environment.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";

export type Case = Pick<ScenarioCase, "means" | "payment" | "before">;

/** The cases in the table that need no earlier request, by group and name. */
export const cases: ReadonlyMap<string, Case> = new Map(
  Object.entries({ success: successCases, ...refusalCases, ...noVerdictCases }).flatMap(([group, ofGroup]) =>
    Object.entries<Case>(ofGroup)
      .filter(([, { payment, before }]) => payment !== undefined && before === undefined)
      .map(([name, one]): [string, Case] => [`${group}.${name}`, one]),
  ),
);

/** Two or three of them at once. */
export const combination = fc.record({
  operation: fc.constantFrom<Operation>("verify", "settle"),
  x402Version: fc.constantFrom<X402Version>(1, 2),
  names: fc.uniqueArray(fc.constantFrom(...cases.keys()), { minLength: 2, maxLength: 3 }),
});

/** A payment that is wrong in the ways of all these cases at once. */
export function combineCases(
  names: readonly string[],
  at: { environment: ScenarioEnvironment; operation: Operation },
): ScenarioPaymentSpec {
  return names
    .map((name) => cases.get(name)?.payment ?? {})
    .map((one) => (typeof one === "function" ? one(at) : one))
    .reduce(combine);
}

/** Combines two cases; where they conflict, the second wins. */
function combine(first: ScenarioPaymentSpec, second: ScenarioPaymentSpec): ScenarioPaymentSpec {
  return {
    ...first,
    ...second,
    headers: { ...first.headers, ...second.headers },
    change: (places) => ({ ...changesAt(places, first.change), ...changesAt(places, second.change) }),
    resign: (signature) => {
      const once = first.resign?.(signature) ?? signature;
      return second.resign?.(once) ?? once;
    },
  };
}
