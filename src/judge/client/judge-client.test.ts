import { expect, test } from "vitest";
import { exactEip3009Method } from "../../methods/exact-eip3009/eip3009-method.ts";
import { networks } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { type ClientFacts, judgeClientFacts } from "./judge-client.ts";
import { type ClientRun, requireWorkingClient } from "./run-client.ts";

const run: ClientRun = { end: { code: 0, signal: null }, served: true, output: "", stdout: "", stderr: "" };
const payTo = "0x00000000000000000000000000000000000000AA";
const allowed = {
  method: exactEip3009Method,
  network: networks.base,
  asset: networks.base.usdc,
  payTo,
  receiver: payTo,
  facilitator: payTo,
  amount: 10_000n,
} as const;
const paid: TokenTransfer = {
  network: "base",
  token: networks.base.usdc.address,
  to: payTo,
  amount: 10_000n,
  transaction: "0x01",
};
const asked = "+0.0 s  GET /report without payment → 402";
const good: ClientFacts = {
  transfers: [paid],
  late: 0,
  leaks: 0,
  payments: 1,
  mostPayments: undefined,
  keepsGoods: false,
  allowed,
  runs: [run],
  services: 1,
  exchanges: [asked, "+0.1 s  GET /report with payment 1: … → 200 goods"],
  links: [],
};

function problemOf(verdict: string, change: Partial<ClientFacts> = {}, changedRun: Partial<ClientRun> = {}) {
  const facts = { ...good, ...change, runs: [{ ...run, ...changedRun }] };
  try {
    requireWorkingClient({ verdict, facts }, { timeoutMs: 30_000, versions: [2] });
    return undefined;
  } catch (error) {
    return error instanceof KitError ? error.message : error;
  }
}

test("a client that buys where nothing goes wrong works", () => {
  expect(problemOf("paid_once_served")).toBeUndefined();
});

test("a client that pays twice even there is judged all the same", () => {
  expect(problemOf("paid_twice", { transfers: [paid, paid] })).toBeUndefined();
});

test.each([
  [
    "does not pay",
    "not_paid_not_served",
    { transfers: [], payments: 0, exchanges: [asked] },
    { end: { code: 1, signal: null }, served: false },
    "The command requested X402_URL, which speaks v2, and did not pay; it ended with exit code 1",
  ],
  [
    "is refused",
    "not_paid_not_served",
    { transfers: [], exchanges: ["+0.1 s  GET /report with payment 1: … → 402 asks 1 (x)"] },
    { end: { code: 1, signal: null }, served: false },
    "The command's payment was refused (402 asks 1 (x)), and it ended with exit code 1",
  ],
  [
    "prints nothing",
    "paid_not_served",
    {},
    { served: false },
    "The command paid, and printed nothing of what it got; it ended with exit code 0",
  ],
  [
    "fails although it has the goods",
    "paid_once_served",
    {},
    { end: { code: 7, signal: null } },
    "The command got what it paid for, and yet ended with exit code 7: it must exit with 0",
  ],
  [
    "is ended by a signal",
    "not_paid_not_served",
    { transfers: [], payments: 0, exchanges: [] },
    { end: { code: null, signal: "SIGSEGV" }, served: false },
    "The command ended by SIGSEGV and never requested X402_URL",
  ],
  ["does not end", "hung", {}, { end: undefined }, "The command still ran after 30 s; it was ended"],
] as const)("the error says of a client that it %s", (_what, verdict, change, changedRun, sentence) => {
  expect(problemOf(verdict, change, changedRun)).toBe(sentence);
});

test.each([
  ["one payment and the goods", {}, "paid_once_served"],
  ["nothing at all", { transfers: [], services: 0 }, "not_paid_not_served"],
  ["one payment and no goods", { services: 0 }, "paid_not_served"],
  ["two payments and the goods", { transfers: [paid, paid] }, "paid_twice"],
  [
    "two payments of two buyers",
    { transfers: [paid, paid], runs: [run, run], services: 2 },
    "paid_once_served",
  ],
  [
    "two payments of two buyers, of whom one got nothing",
    { transfers: [paid, paid], runs: [run, run] },
    "paid_not_served",
  ],
  [
    "three payments of two buyers",
    { transfers: [paid, paid, paid], runs: [run, run], services: 2 },
    "paid_twice",
  ],
  ["one unit more", { transfers: [{ ...paid, amount: 10_001n }] }, "paid_more_or_elsewhere"],
  ["another network", { transfers: [{ ...paid, network: "polygon" }] }, "paid_more_or_elsewhere"],
  ["another token", { transfers: [{ ...paid, token: payTo }] }, "paid_more_or_elsewhere"],
  ["another recipient", { transfers: [paid, { ...paid, to: paid.token }] }, "paid_more_or_elsewhere"],
  ["a payment that came to another origin", { leaks: 1, services: 0 }, "payment_leaked"],
  ["one that was settled too late", { late: 1, services: 0 }, "charged_late"],
  ["two payments, of which one was settled", { payments: 2, mostPayments: 1 }, "signed_again"],
  ["one payment to a shop that keeps the goods", { services: 0, keepsGoods: true }, "paid_once_stopped"],
  ["two payments to it", { transfers: [paid, paid], keepsGoods: true }, "paid_twice"],
  ["one payment and the goods of two buyers", { runs: [run, run], services: 2 }, "nonce_shared"],
  ["one payment and the goods of one of two buyers", { runs: [run, run] }, "paid_once_served"],
  ["a process that did not end", { runs: [{ ...run, end: undefined }] }, "hung"],
  ["one that had paid twice", { runs: [{ ...run, end: undefined }], transfers: [paid, paid] }, "paid_twice"],
] as const)("%s: %#", (_what, facts, verdict) => {
  expect(judgeClientFacts({ ...good, ...facts }).verdict).toBe(verdict);
});

test("addresses are compared whatever their casing", () => {
  const transfers = [{ ...paid, to: "0x00000000000000000000000000000000000000aa" as const }];
  expect(judgeClientFacts({ ...good, transfers }).verdict).toBe("paid_once_served");
});
