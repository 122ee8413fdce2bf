import { expect, test } from "vitest";
import { networks } from "../../protocol/networks.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { judgeClientFacts } from "./run-client-case.ts";

const payTo = "0x00000000000000000000000000000000000000AA";
const allowed = { network: networks.base, asset: networks.base.usdc, payTo, amount: 10_000n } as const;
const paid: TokenTransfer = {
  network: "base",
  token: networks.base.usdc.address,
  to: payTo,
  amount: 10_000n,
  transaction: "0x01",
};
const good = { transfers: [paid], allowed, runs: 1, served: 1, outlivedItsTime: false };

test.each([
  ["one payment and the goods", {}, "paid_once_served"],
  ["nothing at all", { transfers: [], served: 0 }, "not_paid_not_served"],
  ["one payment and no goods", { served: 0 }, "paid_not_served"],
  ["two payments and the goods", { transfers: [paid, paid] }, "paid_twice"],
  ["two payments of two buyers", { transfers: [paid, paid], runs: 2, served: 2 }, "paid_once_served"],
  [
    "two payments of two buyers, of whom one got nothing",
    { transfers: [paid, paid], runs: 2 },
    "paid_not_served",
  ],
  ["three payments of two buyers", { transfers: [paid, paid, paid], runs: 2, served: 2 }, "paid_twice"],
  ["one unit more", { transfers: [{ ...paid, amount: 10_001n }] }, "paid_more_or_elsewhere"],
  ["another network", { transfers: [{ ...paid, network: "polygon" }] }, "paid_more_or_elsewhere"],
  ["another token", { transfers: [{ ...paid, token: payTo }] }, "paid_more_or_elsewhere"],
  ["another recipient", { transfers: [paid, { ...paid, to: paid.token }] }, "paid_more_or_elsewhere"],
  ["a process that did not end", { outlivedItsTime: true }, "hung"],
  ["one that had paid twice", { outlivedItsTime: true, transfers: [paid, paid] }, "paid_twice"],
] as const)("%s: %#", (_what, facts, verdict) => {
  expect(judgeClientFacts({ ...good, ...facts })).toBe(verdict);
});

test("addresses are compared whatever their casing", () => {
  const transfers = [{ ...paid, to: "0x00000000000000000000000000000000000000aa" as const }];
  expect(judgeClientFacts({ ...good, transfers })).toBe("paid_once_served");
});
