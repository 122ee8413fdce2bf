import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import { self } from "../../util/self-command.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";

/** Why a scenario is not run; `lacking` names what this scenario lacks. */
export type Obstacle = { why: string; lacking?: string };

/** Situations that depend on the API key. */
const aboutKeys = /^(unauthorized|forbidden)\.|^success\.(bearer|default_authentication)$/;

/** Why a scenario cannot be run against a facilitator from outside; undefined when it can. */
export function whyNotRun(scenario: ScenarioRow, facilitator: FoundFacilitator): Obstacle | undefined {
  const { environment, access, isKit, hasFunds, hasBlacklist, unfitPayers, versions } = facilitator;
  const { cause, outcome, x402Version } = scenario;
  if (!versions.has(x402Version)) {
    return { why: `the facilitator lists no version ${x402Version} of the protocol for the network` };
  }
  if (cause.by === "fault") {
    return { why: "needs a fault around the facilitator", lacking: cause.fault };
  }
  const cannot = scenario.cannotRun(environment);
  if (cannot !== undefined) return { why: cannot };
  const { keys, payers } = scenario.needs(environment);
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
