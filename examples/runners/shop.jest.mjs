import { leaseHarness } from "x402-facilitator-kit/pool";

let harness;
beforeEach(async () => {
  harness = await leaseHarness(["base"]);
});
afterEach(() => harness.close());

test("is paid", async () => {
  const { settle } = await harness.pay({ network: "base", amount: 10_000n });
  expect(settle.body.success).toBe(true);
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(10_000n);
});

test("is not paid by an empty account", async () => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  expect(settle.body.errorReason).toBe("insufficient_funds");
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(0n);
});
