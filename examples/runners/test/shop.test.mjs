import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { leaseHarness } from "x402-facilitator-kit/pool";

let harness;
before(async () => {
  harness = await leaseHarness(["base"]);
});
beforeEach(() => harness.reset());
after(() => harness.close());

test("is paid", async () => {
  const { settle } = await harness.pay({ network: "base", amount: 10_000n });
  assert.equal(settle.body.success, true);
  assert.equal(await harness.networks.base.balanceOf(harness.organization.recipient), 10_000n);
});

test("is not paid by an empty account", async () => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  assert.equal(settle.body.errorReason, "insufficient_funds");
  assert.equal(await harness.networks.base.balanceOf(harness.organization.recipient), 0n);
});
