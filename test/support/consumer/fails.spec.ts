import { createTest } from "../../../src/harness/vitest/index.ts";

const test = createTest(["base"]);

test("expects too much", async ({ harness, expect }) => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  expect(settle.body.success).toBe(true);
});

test("waits for nothing", async ({ harness, expect }) => {
  await harness.faults.chain("base").holdBlocks();
  // The harness is returned to the pool, and the settle fails.
  void harness.settle(await harness.sign({ network: "base" })).catch(() => {});
  await expect.poll(() => harness.journal.describe()).toContain("sent, txNonce");
  expect("settled").toBe("open");
});

test("names an organization that there is not", ({ harness }) => {
  harness.as("nobody");
});

test("expects what happens", async ({ harness, expect }) => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  expect(settle.body.success).toBe(false);
});
