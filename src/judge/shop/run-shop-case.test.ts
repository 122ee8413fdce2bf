import { expect, test } from "vitest";
import { networks } from "../../protocol/networks.ts";
import { judgeShopFacts } from "./run-shop-case.ts";

const { address: token } = networks.base.usdc;
const paid = { network: "base", token, to: token, amount: 10_000n, transaction: "0x01" } as const;
const seen = { services: 0, exchanges: [], links: [], deliveries: 1, wasNotAsked: false };
const good = {
  ...seen,
  ...{ transfers: [paid], price: 10_000n, takesLess: false, charges: [undefined], wrong: [] },
};
const upto = { takesLess: true, charges: [10_000n] };

test.each([
  ["one payment and one service", {}, "good"],
  ["no payment and none", { transfers: [], charges: [] }, "good"],
  ["no payment and one", { transfers: [] }, "served_without_payment"],
  ["one payment and two", { charges: [undefined, undefined] }, "served_many_times"],
  ["one payment and none", { charges: [] }, "charged_without_service"],
  ["two payments and one", { transfers: [paid, paid] }, "charged_without_service"],
  ["one unit more", { transfers: [{ ...paid, amount: 10_001n }] }, "other_price"],
  ["a wrong status", { wrong: ["answered 500"] }, "wrong_answer"],
  [
    "a wrong status of what was charged for nothing",
    { charges: [], wrong: ["answered 500"] },
    "charged_without_service",
  ],
  ["less than a maximum, as it is said", { ...upto, price: 20_000n }, "good"],
  ["nothing of a maximum, as it is said", { ...upto, charges: [0n], transfers: [] }, "good"],
  ["something, where nothing is said", { ...upto, charges: [0n] }, "charged_without_service"],
  ["more than is said", { ...upto, price: 20_000n, charges: [5_000n] }, "other_charge"],
  ["more than the maximum", { ...upto, price: 9_999n }, "other_price"],
  ["less than the price of scheme exact", { price: 20_000n }, "other_price"],
] as const)("%s: %#", (_what, facts, verdict) => {
  expect(judgeShopFacts({ ...good, ...facts }).verdict).toBe(verdict);
});
