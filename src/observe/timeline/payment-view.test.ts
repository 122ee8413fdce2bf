import { expect, test } from "vitest";
import { operationViewSchema, paymentSummarySchema } from "./payment-view.ts";

/* What the page of the studio computes with, as a saved session or another server may write it. */

test.each(["<b>", "1e400", "-5", ""])("the amount %j is none", (amount) => {
  expect(paymentSummarySchema.shape.amount.safeParse(amount).success).toBe(false);
});

test.each(["<b>", "1e400", "9".repeat(20)])("the chain's time %j is none", (time) => {
  expect(operationViewSchema.shape.chainTime.safeParse(time).success).toBe(false);
});
