import { expect, test } from "vitest";
import { builtInNetworks, networks } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { clientCases } from "./client-cases.ts";
import { type ClientResult, type ClientRun, judgeClientFacts, requireWorkingClient } from "./judge-client.ts";

const [plain] = clientCases;
if (plain === undefined) throw new Error("no cases");
const asked = { atMs: 1, request: "GET /report", payment: undefined, answer: "402" };
const payment = { number: 1, amount: 1n, to: "0x", network: "base", settlementId: "0x01" } as const;
const transfer = { network: "base", token: "0x", to: "0x", amount: 1n, transaction: "0x" } as const;
const run: ClientRun = { end: { code: 0, signal: null }, served: true, stdout: "", stderr: "" };
const working: ClientResult = {
  tested: plain,
  network: "base",
  way: "eip3009",
  verdict: "paid_once_served",
  transfers: [transfer],
  runs: [run],
  exchanges: [asked, { ...asked, payment, answer: "200 goods" }],
  links: [],
  tookMs: 1,
};

function problemOf(change: Partial<ClientResult>, changedRun: Partial<ClientRun> = {}) {
  const runs = [{ ...run, ...changedRun }];
  const options = {
    cases: [],
    networks: [],
    ways: [],
    knownNetworks: builtInNetworks,
    start: () => Promise.reject(new Error("it is not started")),
    timeoutMs: 30_000,
    slowMs: 1,
    seed: 1,
  };
  try {
    requireWorkingClient({ ...working, ...change, runs }, { ...options, versions: [2] });
    return undefined;
  } catch (error) {
    return error instanceof KitError ? error.message : error;
  }
}

test("a client that buys where nothing goes wrong works", () => {
  expect(problemOf({})).toBeUndefined();
});

test("a client that pays twice even there is judged all the same", () => {
  expect(problemOf({ verdict: "paid_twice", transfers: [transfer, transfer] })).toBeUndefined();
});

test.each([
  [
    "does not pay",
    { verdict: "not_paid_not_served", transfers: [], exchanges: [asked] },
    { end: { code: 1, signal: null }, served: false },
    "The command requested X402_URL, which speaks v2, and did not pay; it ended with exit code 1",
  ],
  [
    "is refused",
    {
      verdict: "not_paid_not_served",
      transfers: [],
      exchanges: [{ ...asked, payment, answer: "402 asks 1 (x)" }],
    },
    { end: { code: 1, signal: null }, served: false },
    "The command's payment was refused (402 asks 1 (x)), and it ended with exit code 1",
  ],
  [
    "prints nothing",
    { verdict: "paid_not_served" },
    { served: false },
    "The command paid, and printed nothing of what it got; it ended with exit code 0",
  ],
  [
    "fails although it has the goods",
    {},
    { end: { code: 7, signal: null } },
    "The command got what it paid for, and yet ended with exit code 7: it must exit with 0",
  ],
  [
    "is ended by a signal",
    { verdict: "not_paid_not_served", transfers: [], exchanges: [] },
    { end: { code: null, signal: "SIGSEGV" }, served: false },
    "The command ended by SIGSEGV and never requested X402_URL",
  ],
  ["does not end", { verdict: "hung" }, { end: undefined }, "The command still ran after 30 s; it was ended"],
] as const)("the error says of a client that it %s", (_what, change, changedRun, sentence) => {
  expect(problemOf(change, changedRun)).toBe(sentence);
});

const payTo = "0x00000000000000000000000000000000000000AA";
const allowed = {
  way: "eip3009",
  network: networks.base,
  asset: networks.base.usdc,
  payTo,
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
const good = {
  transfers: [paid],
  late: 0,
  leaks: 0,
  signedAgain: false,
  keepsGoods: false,
  allowed,
  runs: 1,
  served: 1,
  outlivedItsTime: false,
};

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
  ["a payment that came to another origin", { leaks: 1, served: 0 }, "payment_leaked"],
  ["one that was settled too late", { late: 1, served: 0 }, "charged_late"],
  ["two payments, of which one was settled", { signedAgain: true }, "signed_again"],
  ["one payment to a shop that keeps the goods", { served: 0, keepsGoods: true }, "paid_once_stopped"],
  ["two payments to it", { transfers: [paid, paid], keepsGoods: true }, "paid_twice"],
  ["one payment and the goods of two buyers", { runs: 2, served: 2 }, "nonce_shared"],
  ["one payment and the goods of one of two buyers", { runs: 2 }, "paid_once_served"],
  ["a process that did not end", { outlivedItsTime: true }, "hung"],
  ["one that had paid twice", { outlivedItsTime: true, transfers: [paid, paid] }, "paid_twice"],
] as const)("%s: %#", (_what, facts, verdict) => {
  expect(judgeClientFacts({ ...good, ...facts })).toBe(verdict);
});

test("addresses are compared whatever their casing", () => {
  const transfers = [{ ...paid, to: "0x00000000000000000000000000000000000000aa" as const }];
  expect(judgeClientFacts({ ...good, transfers })).toBe("paid_once_served");
});
