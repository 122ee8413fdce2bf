import { usualAmount } from "../../fixtures/cases/payment-spec.ts";
import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import type { FixtureAnswer } from "../../fixtures/engine/answer.ts";
import { methodOf } from "../../methods/methods.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { reasons } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { self } from "../../util/self-command.ts";
import { NotRun } from "../frame/run-cases.ts";
import { memberOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";

/**
 * Requires that a scenario can be run against a facilitator from outside.
 *
 * @throws {NotRun} says why it cannot
 */
export async function requireRunnable(scenario: ScenarioRow, facilitator: FoundFacilitator): Promise<void> {
  const { environment, access, isKit, hasBlacklist, unfitPayers, versions, uptoSubmitter } = facilitator;
  const { cause, outcome, x402Version } = scenario;
  if (!versions.has(x402Version)) {
    throw new NotRun(`the facilitator lists no version ${x402Version} of the protocol for the network`);
  }
  if (cause.by === "fault") throw new NotRun("needs a fault around the facilitator", cause.fault);
  const cannot = scenario.cannotRun(environment);
  if (cannot !== undefined) throw new NotRun(cannot);
  const { keys, payers, methods } = scenario.needs(environment);
  if (methods.some((name) => methodOf({ method: name }).offerNeeds.includes("facilitatorAddress"))) {
    if (uptoSubmitter === undefined) throw new NotRun("the facilitator lists no scheme upto for the network");
    if (!sameAddress(uptoSubmitter, environment.network.facilitatorContract)) {
      throw new NotRun("needs a facilitator that submits payments of scheme upto from its payTo");
    }
  }
  if (!hasBlacklist && (payers.includes("blacklisted") || keys.includes("blockedRecipient"))) {
    throw new NotRun("needs a token with a blacklist");
  }
  const unfit = payers.find((name) => unfitPayers.has(name));
  if (unfit !== undefined) {
    throw new NotRun(`the payer ${unfit} holds ${unfitPayers.get(unfit)}: run ${self} reset`);
  }
  if (isKit) return;
  const key = keys.find((name) => name !== "local" && name !== "unknown");
  if (key !== undefined) throw new NotRun("needs an API key that only this kit has", key);
  const payer = payers.find(
    (name) => name !== "funded" && name !== "empty" && !facilitator.testPayers.has(name),
  );
  if (payer !== undefined) throw new NotRun("needs a test payer that only local chains have", payer);
  if (facilitator.lacksFunds !== undefined && (outcome.kind === "success" || cause.by === "requests")) {
    throw new NotRun(`needs a payer who has money: ${facilitator.lacksFunds}`);
  }
  // Other scenarios about times have minutes of margin.
  if (scenario.name.endsWith(".expires_too_soon")) {
    throw new NotRun("needs the time of the chain to the second");
  }
  if (access.auth !== "none") return;
  const { request } = await scenario.plan(environment);
  if (request.headers.authorization !== environment.keys.local.apiKey) {
    throw new NotRun("is about API keys, and none is sent");
  }
}

/**
 * Requires that a response says something about the facilitator, and not about a payer who has not approved Permit2 or
 * has too little money.
 *
 * @throws {NotRun} says what the payer lacks
 */
export async function requireJudgeable(
  scenario: ScenarioRow,
  { expected, actual }: { expected: FixtureAnswer; actual: FixtureAnswer },
  { environment, isKit, money }: FoundFacilitator,
): Promise<void> {
  if (isKit) return;
  const reason = String(memberOf(actual, "invalidReason") ?? memberOf(actual, "errorReason"));
  const situation = String(memberOf(expected, "situation"));
  const unapproved = "permit2_allowance_required";
  if (reason === unapproved && !(situation in reasons[unapproved].situations)) {
    throw new NotRun("needs a payer who has approved Permit2 on the token");
  }
  const isExpected = situation in reasons.insufficient_funds.situations;
  const isOfFunded = scenario.needs(environment).payers.includes("funded");
  if (!/insufficient_?(funds|balance)/i.test(reason) || isExpected || !isOfFunded) return;
  const { address } = environment.payers?.funded ?? testPayers.funded;
  if (money === undefined) {
    throw new NotRun(
      "the facilitator says that the payer lacks the money; with --rpc-url it is judged whether that is true",
    );
  }
  if ((await money.balanceOf(address)) < usualAmount) throw new NotRun("the payer's money is used up");
}
