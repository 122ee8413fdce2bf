import { expect, test } from "vitest";
import { findScenario, scenarios } from "../../fixtures/cases/scenarios.ts";
import { createFixtureEngine } from "../../fixtures/engine/engine.ts";
import { ruleOf, rulesOfRows } from "./rules-of-rows.ts";

const { environment } = createFixtureEngine({ networks: ["base", "base-sepolia"] });

async function ruleFor(name: string) {
  const row = findScenario(name);
  return ruleOf(row, (await row.plan(environment)).answer);
}

test("every rule of a row belongs to a row of the table", () => {
  const known = new Set(scenarios.map(({ situation }) => situation));
  expect(Object.keys(rulesOfRows).filter((situation) => !known.has(situation))).toEqual([]);
});

test("version 1 lets a payment exceed the amount, and version 2 does not", async () => {
  const reason = "invalid_exact_evm_payload_authorization_value";
  expect(await ruleFor(`verify.${reason}.value_above`)).toBeUndefined();
  expect((await ruleFor(`verify.v2.${reason}_mismatch.value_above`))?.says).toContain("exactly matches");
  expect((await ruleFor("verify.invalid_exact_evm_payload_authorization_value.value_below"))?.says).toContain(
    "meets or exceeds",
  );
});

test("a row has the rule of its situation in the catalogue, unless it is of another", async () => {
  expect((await ruleFor("verify.insufficient_funds.empty"))?.says).toContain("Balance Verification");
  expect((await ruleFor("verify.invalid_payload.huge_value"))?.says).toContain("Balance Verification");
  expect((await ruleFor("verify.invalid_payload.short_nonce"))?.section).toBe("5.2.2");
  expect(await ruleFor("verify.invalid_payload.number_for_value")).toBeUndefined();
});

test("rows that only this kit asks for have no rule", async () => {
  const rows = await Promise.all(
    scenarios.map(async (row) => ({
      group: row.situation.split(".")[0],
      rule: ruleOf(row, (await row.plan(environment)).answer),
    })),
  );
  const free = new Set(rows.flatMap(({ group, rule }) => (rule === undefined ? [group] : [])));
  expect([...free]).toEqual(expect.arrayContaining(["unauthorized", "forbidden", "body_too_large"]));
});
