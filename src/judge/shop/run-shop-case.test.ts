import { expect, test } from "vitest";
import { networks } from "../../protocol/networks.ts";
import { judgeShopFacts } from "./run-shop-case.ts";

const { address: token } = networks.base.usdc;
const paid = { network: "base", token, to: token, amount: 10_000n, transaction: "0x01" } as const;
const good = { transfers: [paid], price: 10_000n, services: 1, wrong: [] };

test.each([
  ["one payment and one service", {}, "good"],
  ["no payment and none", { transfers: [], services: 0 }, "good"],
  ["no payment and one", { transfers: [] }, "served_without_payment"],
  ["one payment and two", { services: 2 }, "served_many_times"],
  ["one payment and none", { services: 0 }, "charged_without_service"],
  ["two payments and one", { transfers: [paid, paid] }, "charged_without_service"],
  ["one unit more", { transfers: [{ ...paid, amount: 10_001n }] }, "other_price"],
  ["a wrong status", { wrong: ["answered 500"] }, "wrong_answer"],
  [
    "a wrong status of what was charged for nothing",
    { services: 0, wrong: ["answered 500"] },
    "charged_without_service",
  ],
] as const)("%s: %#", (_what, facts, verdict) => {
  expect(judgeShopFacts({ ...good, ...facts })).toBe(verdict);
});
