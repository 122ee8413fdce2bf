import { usualAmount } from "../../fixtures/cases/payment-spec.ts";
import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import type { FixtureAnswer } from "../../fixtures/engine/answer.ts";
import type { InvalidReason } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { testPayers } from "../../published/test-payers.ts";
import { membersOf } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";

/** Why a scenario is not run; `lacking` names what this scenario lacks. */
export type Obstacle = { why: string; lacking?: string };

/** Situations that depend on the API key. */
const aboutKeys = /^(unauthorized|forbidden)\.|^success\.(bearer|default_authentication)$/;

/** Why a scenario cannot be run against a facilitator from outside; undefined when it can. */
export function whyNotRun(scenario: ScenarioRow, facilitator: FoundFacilitator): Obstacle | undefined {
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
export async function whyNotJudged(
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
