import fc from "fast-check";
import { expect, test } from "vitest";
import {
  authorizationCanceled,
  authorizationUsed,
  contract,
  forwarded,
  noiseOf,
  payment,
  receiptOf,
  settledLog,
  stranger,
  token,
  transfer,
  type UnplacedLog,
  word,
} from "../../../test/support/logs.ts";
import { readReceivedTransfers } from "./payouts.ts";

const received = (logs: readonly UnplacedLog[], succeeded = true) =>
  readReceivedTransfers(receiptOf(logs, succeeded), token, contract);

/** The first log of the receipts here has index 7. */
const direct = {
  logIndex: 8,
  from: payment.payer,
  value: payment.value,
  authorizationNonce: payment.authorizationNonce,
  settled: false,
};

test("a transfer right behind the use of an authorization was brought by it", () => {
  expect(received([authorizationUsed(payment), transfer(payment)])).toEqual([direct]);
});

test("a transfer that was settled says so", () => {
  expect(received([authorizationUsed(payment), transfer(payment), settledLog(payment)])).toEqual([
    { ...direct, settled: true },
  ]);
});

test("what was settled does not hide what was submitted beside it", () => {
  const second = { ...payment, authorizationNonce: word("7") };
  const logs = [
    authorizationUsed(payment),
    transfer(payment),
    settledLog(payment),
    authorizationUsed(second),
    transfer(second),
  ];
  expect(received(logs)).toEqual([
    { ...direct, settled: true },
    { ...direct, logIndex: 11, authorizationNonce: word("7") },
  ]);
});

test.each<[string, UnplacedLog[]]>([
  ["sent without any", [transfer(payment)]],
  ["behind a cancellation", [authorizationCanceled(payment), transfer(payment)]],
  ["behind a log in between", [authorizationUsed(payment), forwarded(payment), transfer(payment)]],
  ["before the use", [transfer(payment), authorizationUsed(payment)]],
  [
    "behind the use of another payer's",
    [authorizationUsed({ ...payment, payer: stranger }), transfer(payment)],
  ],
  ["behind the use at another token", [authorizationUsed(payment, stranger), transfer(payment)]],
])("a transfer %s was brought by no authorization", (_, logs) => {
  expect(received(logs)).toMatchObject([{ authorizationNonce: undefined, settled: false }]);
});

test.each<[string, UnplacedLog[]]>([
  ["of another contract", [authorizationUsed(payment), transfer(payment), settledLog(payment, stranger)]],
  [
    "of another nonce",
    [
      authorizationUsed(payment),
      transfer(payment),
      settledLog({ ...payment, authorizationNonce: word("7") }),
    ],
  ],
  [
    "of another payer",
    [authorizationUsed(payment), transfer(payment), settledLog({ ...payment, payer: stranger })],
  ],
  [
    "of another token",
    [authorizationUsed(payment), transfer(payment), settledLog({ ...payment, asset: stranger })],
  ],
  ["that is a Forwarded", [authorizationUsed(payment), transfer(payment), forwarded(payment)]],
])("a Settled %s settles nothing", (_, logs) => {
  expect(received(logs)).toEqual([direct]);
});

test.each<[string, UnplacedLog[], boolean]>([
  ["to another account", [authorizationUsed(payment), transfer(payment, stranger)], true],
  ["of another token", [authorizationUsed(payment), transfer(payment, contract, stranger)], true],
  ["of a reverted transaction", [authorizationUsed(payment), transfer(payment)], false],
])("a transfer %s was not received", (_, logs, succeeded) => {
  expect(received(logs, succeeded)).toEqual([]);
});

test("reading never throws, and noise is no more than a transfer", () => {
  const real = [authorizationUsed(payment), transfer(payment), settledLog(payment)];
  fc.assert(
    fc.property(noiseOf([token, contract, stranger], real), (logs) => {
      expect(received(logs).filter(({ value }) => value === payment.value)).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});
