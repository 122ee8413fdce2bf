import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { scenarios } from "../../../src/fixtures/cases/scenarios.ts";
import {
  type ScenarioEnvironment,
  serveNetworks,
} from "../../../src/fixtures/engine/scenario-environment.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { type ConformanceTarget, runScenario } from "../../../src/judge/conformance/run-conformance.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import type { NetworkName } from "../../../src/protocol/networks.ts";
import { testKeys } from "../../../src/published/test-keys.ts";
import { createFaultArranger } from "../../support/conformance/arrange-faults.ts";
import { startTestHarness } from "../../support/service.ts";

/* Every row of the table against the real service: what the fixtures say is what it says. */

const names = ["base", "base-sepolia"] as const;
const undisturbed = scenarios.filter(({ cause }) => cause.by !== "fault");
const disturbed = scenarios.filter(({ cause }) => cause.by === "fault");

// Rows wait for blocks more than they work.
vi.setConfig({ maxConcurrency: 24 });

let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks: names, settleWaitMs: 3_000 });
  await issueKeysThatAreNotGood();
});
afterAll(() => harness?.close());

/** The service of the harness does not know these keys; here they were good once. */
async function issueKeysThatAreNotGood(): Promise<void> {
  const { organizations } = harness;
  const issue = (
    { apiKey, organizationId, scopes }: (typeof testKeys)["revoked" | "expired"],
    expiresAt?: number,
  ) => organizations.createKey(organizationId, { scopes, key: apiKey, expiresAt });
  await issue(testKeys.expired, Date.now() + 200);
  const { keyId } = await issue(testKeys.revoked);
  await organizations.revokeKey(keyId);
  while ((await organizations.authenticate(testKeys.expired.apiKey)) !== null) await setTimeout(20);
}

let runs = 0;

function targetOn(name: NetworkName): ConformanceTarget {
  const networks = serveNetworks(names);
  const network = networks.find((one) => one.name === name) ?? networks[0];
  const environment: ScenarioEnvironment = {
    networks,
    network,
    keys: testKeys,
    now: async () => (await harness.chains[name]?.now()) ?? 0n,
    run: `service ${++runs}`,
  };
  const { origin } = new URL(harness.description.facilitator.url);
  return {
    environment,
    send: (request) => sendRequest(origin, request),
    arrange: createFaultArranger(harness, environment),
  };
}

test("there is no row that only the fixtures can show", () => {
  for (const name of names) {
    const { environment } = targetOn(name);
    expect(scenarios.filter(({ cannotRun }) => cannotRun(environment) !== undefined)).toEqual([]);
  }
});

describe.concurrent("on base", () => {
  test.each(undisturbed)("$name", async (scenario) => {
    expect(await runScenario(scenario, targetOn("base"))).toEqual([]);
  });
});

// Another contract, another name of the token. What settle refuses there, verify does.
const elsewhere = undisturbed.filter(
  ({ operation, outcome }) => operation === "verify" || outcome.kind === "success",
);
describe.concurrent("on base-sepolia", () => {
  test.each(elsewhere)("$name", async (scenario) => {
    expect(await runScenario(scenario, targetOn("base-sepolia"))).toEqual([]);
  });
});

describe("in trouble", () => {
  test.each(disturbed)("$name", async (scenario) => {
    await harness.reset();
    expect(await runScenario(scenario, targetOn("base"))).toEqual([]);
  });
});
