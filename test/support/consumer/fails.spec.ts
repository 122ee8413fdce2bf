import { createTest } from "../../../src/vitest/index.ts";

const test = createTest(["base"]);

test("expects too much", async ({ harness, expect }) => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  expect(settle.body.success).toBe(true);
});

test("expects what happens", async ({ harness, expect }) => {
  const { settle } = await harness.pay({ network: "base", payer: "empty" });
  expect(settle.body.success).toBe(false);
});
