import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";

/* A payer whose transactions revert costs the operator gas each time. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], settleWaitMs: 1_500 });
});
afterAll(() => harness?.close());

const sign = (payer: "fickle" | "funded") => harness.sign({ network: "base", payer });

test("a payer whose settles are reverted again and again is made to wait, and no one else is", async () => {
  for (let payment = 0; payment < 4; payment++) {
    expect(await harness.settle(await sign("fickle"))).toMatchObject({
      status: 200,
      body: { success: false, errorReason: "invalid_transaction_state" },
    });
  }
  const bodies = await Promise.all(Array.from({ length: 4 }, () => sign("fickle")));
  const [answers, ofAnother] = await Promise.all([
    Promise.all(bodies.map((body) => harness.settle(body))),
    harness.settle(await sign("funded")),
  ]);
  expect(ofAnother).toMatchObject({ status: 200, body: { success: true } });
  const late = answers.filter(({ status }) => status === 503);
  expect(late.length).toBeGreaterThanOrEqual(3);
  for (const { body } of late) {
    expect(body).toMatchObject({ success: false, errorReason: "unexpected_settle_error", transaction: "" });
    expect(JSON.stringify(body)).toContain("Recent settles of this payer reverted");
  }
});
