import { afterAll, beforeAll, expect, test } from "vitest";
import type { Harness } from "../../../src/harness/index.ts";
import { leaseHarness } from "../../../src/harness/vitest/index.ts";

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await leaseHarness(["base"]);
});
afterAll(() => harness?.close());

test("pays", async () => {
  expect((await harness.pay({ network: "base", amount: 3n })).settle.body.success).toBe(true);
});

test("finds what the test before has paid", async () => {
  expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(3n);
});

test("a network that the pool lacks is named", async () => {
  await expect(leaseHarness(["polygon"])).rejects.toThrow("The harnesses of this run have no polygon");
});
