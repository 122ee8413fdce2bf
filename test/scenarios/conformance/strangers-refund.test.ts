import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { startReferenceFacilitator } from "../../support/conformance/reference-facilitator.ts";
import { runHere } from "../../support/run-here.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/* The refund of a channel that a stranger asks for: this kit passes the case, and one that signs for anybody does not. */

let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
});
afterAll(() => harness?.close());

const judge = async (args: readonly string[], env: Record<string, string> = {}) => {
  const { code, stdout } = await runHere(
    ["conformance", ...args, "--cases", "strangers_refund", "--json"],
    env,
  );
  const { scenarios } = JSON.parse(stdout);
  expect(scenarios).toHaveLength(1);
  return { code, ...scenarios[0] };
};

/** An account with money, and the arguments for a facilitator that is not of this kit. */
async function ofOthers(url: string) {
  const chain = runningChain(harness, "base");
  const payerKey = generatePrivateKey();
  await chain.fund(privateKeyToAddress(payerKey), 1_000_000n);
  const merchant = privateKeyToAddress(generatePrivateKey());
  const args = ["--url", url, "--pay-to", merchant, "--rpc-url", chain.rpcUrl];
  return { args, env: { PAYER_PRIVATE_KEY: payerKey } };
}

test("this kit passes it", async () => {
  const { origin } = new URL(harness.description.facilitator.url);
  expect(await judge(["--url", origin])).toMatchObject({ code: 0, outcome: "passed" });
});

test("a facilitator that signs for anybody fails it, by its answer and by the chain", async () => {
  const chain = runningChain(harness, "base");
  const chainId = chain.network.chainId;
  const reference = await startReferenceFacilitator({ ...chain, chainId });
  try {
    const { args, env } = await ofOthers(reference.origin);
    const { code, outcome, level, differences } = await judge(args, env);
    expect({ code, outcome, level }).toEqual({ code: 1, outcome: "failed", level: "wrong" });
    expect(differences.map(({ at }: { at: string }) => at)).toEqual(["body.success", "chain"]);
  } finally {
    await reference.close();
  }
});

test("where the scheme is not listed it is not run, and the report says so", async () => {
  const other = await startTestHarness({ networks: ["base"] });
  try {
    const { origin } = new URL(other.description.facilitator.url);
    const { outcome, why } = await judge(["--url", origin]);
    expect(outcome).toBe("not_run");
    expect(why).toContain("batch-settlement");
  } finally {
    await other.close();
  }
});
