import { expect, test } from "vitest";
import { isPublishedKey } from "../../payer/accounts.ts";
import { goodsOf, payerOf } from "./offers.ts";

test("the same seed and case give the same payer and goods, and any other different ones", () => {
  const made = [payerOf(1, "a"), payerOf(1, "b"), payerOf(2, "a")].map(({ privateKey }) => privateKey);
  expect(payerOf(1, "a").privateKey).toBe(made[0]);
  expect(new Set(made).size).toBe(3);
  expect(goodsOf(1, "a")).toBe(goodsOf(1, "a"));
  expect(new Set([goodsOf(1, "a"), goodsOf(1, "b"), goodsOf(2, "a")]).size).toBe(3);
  expect(made.some(isPublishedKey)).toBe(false);
});
