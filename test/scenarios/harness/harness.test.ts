import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectHarness, createHarness, type Harness } from "../../../src/harness/index.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";

/* What `x402-facilitator-kit/harness` gives to an integrator's tests. */

let harness: Harness<"base" | "optimism-sepolia">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base", "optimism-sepolia"] });
});
afterAll(() => harness?.close());

describe("a harness", () => {
  beforeEach(() => harness.reset());

  test.each(["base", "optimism-sepolia"] as const)(
    "pays on %s, and gives both answers and the receipt",
    async (name) => {
      const { recipient } = harness.organization;
      const network = harness.networks[name];
      const { verify, settle, receipt } = await harness.pay({ network: name, amount: 2_500n });
      expect(verify).toMatchObject({
        status: 200,
        body: { isValid: true, payer: testPayers.funded.address },
      });
      expect(settle).toMatchObject({
        status: 200,
        body: { success: true, transaction: receipt?.transactionHash },
      });
      expect(receipt).toMatchObject({
        status: "success",
        to: network.facilitatorContract.address.toLowerCase(),
      });
      expect(await network.balanceOf(recipient)).toBe(2_500n);
    },
  );

  test.each(Object.entries<TestPayer>(testPayers))(
    "%s pays as the table says, in both versions",
    async (name, payer) => {
      const { outcome, settleOutcome = outcome } = payer;
      for (const network of ["base", "optimism-sepolia"] as const) {
        const { verify, settle } = await harness.pay({
          network,
          payer: name as TestPayerName,
          x402Version: 2,
        });
        expect(verify.body).toMatchObject(
          outcome === "success" ? { isValid: true } : { isValid: false, invalidReason: outcome },
        );
        expect(settle.body).toMatchObject(
          settleOutcome === "success" ? { success: true } : { success: false, errorReason: settleOutcome },
        );
      }
    },
  );

  test("expires an authorization without waiting", async () => {
    const request = await harness.sign({ network: "base", validForSeconds: 3_600 });
    expect((await harness.verify(request)).body.isValid).toBe(true);
    await harness.networks.base.advanceTime(3_600);
    expect((await harness.verify(request)).body).toMatchObject({
      isValid: false,
      invalidReason: "invalid_exact_evm_payload_authorization_valid_before",
    });
    expect((await harness.settle(request)).body).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_payload_authorization_valid_before",
    });
  });

  test("has the networks that were asked for, in the types too", () => {
    expect(Object.keys(harness.networks)).toEqual(["base", "optimism-sepolia"]);
    // @ts-expect-error polygon was not asked for
    expect(harness.networks.polygon).toBeUndefined();
  });

  test("can be used from another process by its URL", async () => {
    const { recipient } = harness.organization;
    const other = await connectHarness(harness.facilitator.url, ["base"]);
    const { base } = other.networks;
    await base.fund(recipient, 7n);
    const before = await base.now();
    expect(await base.advanceTime(1_000)).toBeGreaterThanOrEqual(before + 1_000n);
    expect((await other.pay({ network: "base", amount: 3n })).settle.body.success).toBe(true);
    expect(await harness.networks.base.balanceOf(recipient)).toBe(10n);
    await other.reset();
    expect(await harness.networks.base.balanceOf(recipient)).toBe(0n);
    await other.close();
    expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
  });
});
