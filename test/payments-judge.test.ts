import { describe, expect, test } from "vitest";
import type { Address, Hex } from "../src/protocol/hex.ts";
import {
  type AnsweredPayment,
  judgePayments,
  type Kill,
  type Success,
  type Verdict,
} from "./support/operator/judge-payments.ts";
import type { Transfer } from "./support/transfers.ts";

/* The long run of an operator's troubles is worth what its judge notices. */

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const transaction = (digit: string): Hex => `0x${digit.repeat(64)}`;
const contract = address("c");
const shop = address("a");
const otherShop = address("b");
const one = transaction("1");
const two = transaction("2");

/** Successes that a payment was given by the first instance, one after the other, beginning with this time. */
const successes = (transactions: readonly Success["transaction"][], at = 10_000): Success[] =>
  transactions.map((hash, index) => ({ transaction: hash, instance: "instance-1", at: at + 5_000 * index }));

const payment = (value: bigint, changes: Partial<AnsweredPayment> = {}): AnsweredPayment => ({
  payer: address("d"),
  value,
  straight: false,
  recipient: shop,
  successes: successes([one]),
  refusals: [],
  saidToBeSettled: false,
  ...changes,
});
const taken = (value: bigint, by = one): Transfer => ({
  transaction: by,
  from: address("D"),
  to: contract,
  value,
});
const paid = (value: bigint, by = one, to = shop): Transfer => ({
  transaction: by,
  from: contract,
  to,
  value,
});

const judge = (
  payments: readonly AnsweredPayment[],
  transfers: readonly Transfer[],
  kills: readonly Kill[] = [],
) => judgePayments(payments, transfers, contract, { kills });
const good: Verdict = { lost: [], twice: [], handedOverAgain: [], wrong: [], undecided: [] };

test("payments that arrived once and were answered once are good, alone and several to a transfer", () => {
  const payments = [payment(10n), payment(11n), payment(12n, { recipient: otherShop })];
  expect(judge(payments, [taken(10n), taken(11n), taken(12n), paid(21n), paid(12n, one, otherShop)])).toEqual(
    good,
  );
  const lostOnItsWay = payment(10n, { successes: [], saidToBeSettled: true });
  expect(judge([lostOnItsWay], [taken(10n), paid(10n)])).toEqual(good);
});

const straight = (value: bigint, to = shop): Transfer => ({ ...taken(value), to });
const zero = payment(0n, { successes: successes([""]) });

test("so are those that went straight to their recipient, and those of which nothing was to be taken", () => {
  expect(
    judge([payment(10n, { straight: true }), payment(11n)], [straight(10n), taken(11n), paid(11n)]),
  ).toEqual(good);
  expect(judge([zero, zero], [])).toEqual(good);
  expect(judge([{ ...zero, successes: [], saidToBeSettled: true }], [])).toEqual(good);
});

test("a success may name a transaction whose block has vanished since, and no other one", () => {
  const named = [payment(10n, { successes: successes([two]) })];
  const transfers = [taken(10n), paid(10n)];
  expect(judgePayments(named, transfers, contract, { replaced: new Set([two]) })).toEqual(good);
  const third = new Set([transaction("3")]);
  expect(judgePayments(named, transfers, contract, { replaced: third }).wrong).toHaveLength(1);
  expect(judgePayments(named, [], contract, { replaced: new Set([two]) }).lost).toHaveLength(1);
});

describe("it notices", () => {
  test.each<[string, keyof Verdict, readonly AnsweredPayment[], readonly Transfer[]]>([
    ["a success without a transfer", "lost", [payment(10n)], []],
    [
      "what is said to be settled before, and is not",
      "lost",
      [payment(10n, { successes: [], saidToBeSettled: true })],
      [],
    ],
    ["what was taken and not passed on", "lost", [payment(10n)], [taken(10n)]],
    ["what was passed on to another", "lost", [payment(10n)], [taken(10n), paid(10n, one, otherShop)]],
    [
      "one payment of a batch that was not passed on",
      "lost",
      [payment(10n), payment(11n)],
      [taken(10n), taken(11n), paid(10n)],
    ],
    [
      "two transfers of one payment",
      "twice",
      [payment(10n)],
      [taken(10n), paid(10n), taken(10n, two), paid(10n, two)],
    ],
    ["more than was taken", "twice", [payment(10n)], [taken(10n), paid(20n)]],
    [
      "a payment out of what lies in the contract",
      "twice",
      [payment(10n)],
      [taken(10n), paid(10n), paid(10n, two)],
    ],
    [
      "two successes of one payment",
      "twice",
      [payment(10n, { successes: successes([one, one]) })],
      [taken(10n), paid(10n)],
    ],
    [
      "a failure that was paid",
      "wrong",
      [payment(10n, { successes: [], refusals: ["reverted"] })],
      [taken(10n), paid(10n)],
    ],
    [
      "a failure before the success",
      "wrong",
      [payment(10n, { refusals: ["reverted"] })],
      [taken(10n), paid(10n)],
    ],
    [
      "a failure of a good payment",
      "wrong",
      [payment(10n, { successes: [], refusals: ["insufficient_funds"] })],
      [],
    ],
    [
      "a success with another transaction",
      "wrong",
      [payment(10n, { successes: successes([two]) })],
      [taken(10n), paid(10n)],
    ],
    [
      "one that went straight to another",
      "lost",
      [payment(10n, { straight: true })],
      [straight(10n, otherShop)],
    ],
    ["one that went to the shop and not through the contract", "lost", [payment(10n)], [straight(10n)]],
    ["one taken twice straight", "twice", [payment(10n, { straight: true })], [straight(10n), straight(10n)]],
    [
      "the maximum where a part was asked for",
      "twice",
      [payment(10n)],
      [taken(10n), paid(10n), taken(20n), paid(20n)],
    ],
    ["the maximum where nothing was asked for", "twice", [zero], [taken(20n), paid(20n)]],
    ["a transaction where nothing was asked for", "wrong", [{ ...zero, successes: successes([one]) }], []],
    ["no answer", "undecided", [payment(10n, { successes: [] })], []],
  ])("%s", (_, kind, payments, transfers) => {
    expect(judge(payments, transfers)[kind]).not.toEqual([]);
  });
});

describe("two successes of one payment", () => {
  const [first, second] = [10_000, 15_000];
  const twoSuccesses = payment(10n, { successes: successes([one, one], first) });
  const killed = (at: number, instance = "instance-1"): Kill => ({ instance, at });
  const transfers = [taken(10n), paid(10n)];

  test.each<[string, readonly Kill[], Partial<AnsweredPayment>?]>([
    ["when the instance of the first was killed at once", [killed(first)]],
    ["when it was killed within a second", [killed(20_000), killed(first + 1_000)]],
    ["when the caller read the answer after the kill", [killed(first - 500)]],
    [
      "when they became known in another order",
      [killed(first + 1)],
      { successes: successes([one, one], first).toReversed() },
    ],
    [
      "also a third, when the second's instance was killed as well",
      [killed(first + 1), killed(second + 1)],
      { successes: successes([one, one, one], first) },
    ],
  ])("are one that was handed over again %s", (_, kills, changes = {}) => {
    const verdict = judge([{ ...twoSuccesses, ...changes }], transfers, kills);
    expect(verdict).toEqual({ ...good, handedOverAgain: [expect.stringContaining("more than one success")] });
  });

  test.each<[string, readonly Kill[], Partial<AnsweredPayment>?]>([
    ["when nothing was killed", []],
    ["when another instance was", [killed(first, "instance-2")]],
    ["when it was killed later", [killed(first + 1_001)]],
    ["when it was killed before, and may have been back", [killed(first - 501)]],
    ["when the instance of the second alone was killed", [killed(second)]],
    [
      "when there was a third, and one kill",
      [killed(first)],
      { successes: successes([one, one, one], first) },
    ],
    [
      "when it is not known who gave the first",
      [killed(first)],
      { successes: successes([one, one], first).map((success) => ({ ...success, instance: undefined })) },
    ],
  ])("are twice %s", (_, kills, changes = {}) => {
    const verdict = judge([{ ...twoSuccesses, ...changes }], transfers, kills);
    expect(verdict).toEqual({ ...good, twice: [expect.stringContaining("more than one success")] });
  });

  test("excuse no second transfer, and no other transaction", () => {
    const again = [taken(10n), paid(10n), taken(10n, two), paid(10n, two)];
    expect(judge([twoSuccesses], again, [killed(first)]).twice).not.toEqual([]);
    const other = payment(10n, { successes: successes([one, two], first) });
    expect(judge([other], transfers, [killed(first)]).wrong).not.toEqual([]);
  });
});
