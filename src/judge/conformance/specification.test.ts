import { expect, test } from "vitest";
import { scenarios } from "../../fixtures/cases/scenarios.ts";
import { ruleOf, rules } from "./specification.ts";

test("every rule belongs to a row of the table", () => {
  const known = new Set(scenarios.map(({ situation }) => situation));
  expect(Object.keys(rules).filter((situation) => !known.has(situation))).toEqual([]);
});

test("version 1 lets a payment exceed the amount, and version 2 does not", () => {
  const situation = "invalid_exact_evm_payload_authorization_value.value_above";
  expect(ruleOf({ situation, x402Version: 1 })).toBeUndefined();
  expect(ruleOf({ situation, x402Version: 2 })?.says).toContain("exactly matches");
});

test("rows that only this kit asks for have no rule", () => {
  const free = scenarios.filter((scenario) => ruleOf(scenario) === undefined);
  const groups = new Set(free.map(({ situation }) => situation.split(".")[0]));
  expect([...groups]).toEqual(expect.arrayContaining(["unauthorized", "forbidden", "body_too_large"]));
});
