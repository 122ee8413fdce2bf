import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { askNode } from "../../../src/chain/rpc/calls.ts";
import { scenarios } from "../../../src/fixtures/cases/scenarios.ts";
import {
  type ScenarioEnvironment,
  serveNetworks,
} from "../../../src/fixtures/engine/scenario-environment.ts";
import type { HarnessDescription } from "../../../src/harness/control/description.ts";
import { requireRunning } from "../../../src/harness/control/description.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { type ConformanceTarget, runScenario } from "../../../src/judge/conformance/run-conformance.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { askNextApproval, askNextTransaction } from "../../../src/methods/on-chain/payer-state.ts";
import { channels } from "../../../src/observe/channels/channels.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import type { Dialect } from "../../../src/protocol/catalogue.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import type { NetworkName } from "../../../src/protocol/networks.ts";
import { type PayToPolicy, payToPolicies } from "../../../src/protocol/signed-payment.ts";
import { createFaultArranger } from "../../support/conformance/arrange-faults.ts";
import { startTestHarness } from "../../support/service.ts";

/* Every row of the table against the real service: what the fixtures say is what it says. */

const names = ["base", "base-sepolia"] as const;
const undisturbed = scenarios.filter(({ cause }) => cause.by !== "fault");
const disturbed = scenarios.filter(({ cause }) => cause.by === "fault");

// Rows wait for blocks more than they work.
vi.setConfig({ maxConcurrency: 24 });

/** Where payments go to the contract alone, and where they may go anywhere. */
const harnesses: Partial<Record<PayToPolicy | "hasty", RunningHarness>> = {};
beforeAll(async () => {
  for (const payTo of payToPolicies) {
    const reasons = dialectOf(payTo);
    harnesses[payTo] = await startTestHarness({ networks: names, settleWaitMs: 8_000, payTo, reasons });
    await issueKeysThatAreNotGood(harnessOf(payTo));
  }
});
afterAll(async () => {
  for (const harness of Object.values(harnesses)) await harness.close();
});

function harnessOf(name: keyof typeof harnesses): RunningHarness {
  const harness = harnesses[name];
  if (harness === undefined) throw new Error(`no harness for ${name}`);
  return harness;
}

/** The service of the harness does not know these keys; here they were good once. */
async function issueKeysThatAreNotGood({ organizations }: RunningHarness): Promise<void> {
  const issue = (
    { apiKey, organizationId, scopes }: (typeof testKeys)["revoked" | "expired"],
    expiresAt?: number,
  ) => organizations.createKey(organizationId, { scopes, key: apiKey, expiresAt });
  await issue(testKeys.expired, Date.now() + 200);
  const { keyId } = await issue(testKeys.revoked);
  await organizations.revokeKey(keyId);
  while ((await organizations.authenticate(testKeys.expired.apiKey)) !== null) await setTimeout(20);
}

/** Payments may go anywhere where they may at public facilitators, whose reasons are given there. */
const dialectOf = (payTo: PayToPolicy): Dialect => (payTo === "any" ? "reference" : "spec");

let runs = 0;

/** The checks of the payments of each row on base, as published, by the row's name; a refused one with its situation. */
const checksOfRows = new Map<string, string[]>();

/** Notes the published checks under the row whose requests name themselves in the header `tracestate`. */
function noteChecks(): () => void {
  const rows = new WeakMap<object, string>();
  const unsubscribe = [
    channels.request.subscribe(({ headers, payment }) => {
      const [, row] = /^row=(.*)$/.exec(String(headers?.tracestate)) ?? [];
      if (row !== undefined) rows.set(payment, row);
    }),
    channels.checks.subscribe(({ payment, checks }) => {
      const row = rows.get(payment);
      if (row === undefined) return;
      const names = checks.map(({ check, refusal }) => (refusal ? `${check}(${refusal.situation})` : check));
      checksOfRows.set(row, [...(checksOfRows.get(row) ?? []), ...names]);
    }),
  ];
  return () => {
    for (const stop of unsubscribe) stop();
  };
}

/** The same target, whose requests name their row. */
function noting(row: string, target: ConformanceTarget): ConformanceTarget {
  return {
    ...target,
    send: (request) => target.send({ ...request, headers: { ...request.headers, tracestate: `row=${row}` } }),
  };
}

function targetOn(
  name: NetworkName,
  payTo: PayToPolicy = "contract",
  harness = harnessOf(payTo),
): ConformanceTarget {
  const networks = serveNetworks(names, undefined, undefined, payTo, dialectOf(payTo));
  const network = networks.find((one) => one.name === name) ?? networks[0];
  const environment: ScenarioEnvironment = {
    networks,
    network,
    keys: testKeys,
    now: async () => (await harness.chains[name]?.now()) ?? 0n,
    nextApproval: (payer) => nextApprovalOn(harness, name, payer),
    nextTransaction: (payer) =>
      askNextTransaction(askNode(requireRunning(harness.description, name).rpcUrl), payer),
    run: `service ${++runs}`,
  };
  const { origin } = new URL(harness.description.facilitator.url);
  return {
    environment,
    send: (request) => sendRequest(origin, request),
    arrange: createFaultArranger(harness, environment),
  };
}

function nextApprovalOn(
  { description }: { description: HarnessDescription },
  name: NetworkName,
  payer: Address,
): Promise<bigint> {
  const running = requireRunning(description, name);
  return askNextApproval(askNode(running.rpcUrl), { asset: running.asset.address, payer });
}

const isOf =
  (payTo: PayToPolicy) =>
  ({ payTo: policies }: (typeof scenarios)[number]) =>
    policies.includes(payTo);

test("there is no row that only the fixtures can show", () => {
  for (const name of names) {
    const environments = payToPolicies.map((payTo) => targetOn(name, payTo).environment);
    const unseen = scenarios.filter(({ cannotRun }) =>
      environments.every((environment) => cannotRun(environment) !== undefined),
    );
    expect(unseen).toEqual([]);
  }
});

describe.concurrent("on base", () => {
  beforeAll(noteChecks);
  test.each(undisturbed.filter(isOf("contract")))("$name", async (scenario) => {
    expect(await runScenario(scenario, noting(scenario.name, targetOn("base")))).toEqual([]);
  });
});

test("each row makes the checks that it always made, in their order", async () => {
  const lines = [...checksOfRows].map(([row, checks]) => `${row}: ${checks.join(" ")}\n`);
  await expect(lines.sort().join("")).toMatchFileSnapshot("../../surface/checks.txt");
});

describe.concurrent("on base, where payments go straight to the wallet", () => {
  test.each(undisturbed.filter(isOf("any")))("$name", async (scenario) => {
    expect(await runScenario(scenario, targetOn("base", "any"))).toEqual([]);
  });
});

const ofRecipients = undisturbed.filter(isOf("recipients")).filter((row) => !isOf("contract")(row));
describe.concurrent("on base, where payments may go to the organization's own wallet", () => {
  test.each(ofRecipients)("$name", async (scenario) => {
    expect(await runScenario(scenario, targetOn("base", "recipients"))).toEqual([]);
  });
});

// Another contract, another name of the token. What settle refuses there, verify does.
const elsewhere = undisturbed
  .filter(isOf("contract"))
  .filter(({ operation, outcome }) => operation === "verify" || outcome.kind === "success");
describe.concurrent("on base-sepolia", () => {
  test.each(elsewhere)("$name", async (scenario) => {
    expect(await runScenario(scenario, targetOn("base-sepolia"))).toEqual([]);
  });
});

describe("in trouble", () => {
  // For rows about a settle that waits in vain. Not while others run at once: there are processes enough then.
  beforeAll(async () => {
    harnesses.hasty = await startTestHarness({ networks: names, settleWaitMs: 2_000 });
  });

  test.each(disturbed.filter(isOf("contract")))("$name", async (scenario) => {
    const waitsInVain = scenario.cause.by === "fault" && scenario.cause.fault === "mining_held";
    const harness = harnessOf(waitsInVain ? "hasty" : "contract");
    await harness.reset();
    expect(await runScenario(scenario, targetOn("base", "contract", harness))).toEqual([]);
  });
});

// Of the others the way to the payee is no part.
const ofChain =
  /^(front_run|reverted|submitted_by_others|token_paused|contract_blacklisted|balance_taken_up|.*under_way)$/;
const disturbedOnChain = disturbed.filter(({ cause }) => cause.by === "fault" && ofChain.test(cause.fault));
describe("in trouble, where payments go straight to the wallet", () => {
  test.each(disturbedOnChain.filter(isOf("any")))("$name", async (scenario) => {
    await harnessOf("any").reset();
    expect(await runScenario(scenario, targetOn("base", "any"))).toEqual([]);
  });
});
