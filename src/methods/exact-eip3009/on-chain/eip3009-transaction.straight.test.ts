import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  authorizationCanceled,
  authorizationUsed,
  contract,
  forwarded,
  payment as logged,
  noiseOf,
  receiptOf,
  recipient,
  settledLog,
  settlementFailed,
  stranger,
  token,
  transfer,
  type UnplacedLog,
  word,
} from "../../../../test/support/logs.ts";
import { type Hex, uintWord } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { paymentOf } from "../eip3009-method.ts";
import { exactEip3009Settling } from "./eip3009-settling.ts";
import {
  effectOf,
  encodeTransfer,
  encodeTransferBatch,
  readStraightPayments,
} from "./eip3009-transaction.ts";

const signedTo = (to: Hex): SignedPayment =>
  paymentOf(token, {
    authorization: {
      ...{ from: logged.payer, to, value: logged.value, nonce: logged.authorizationNonce },
      ...{ validAfter: 0n, validBefore: 2n ** 40n },
    },
    signature: "0x",
  });
const payment = signedTo(recipient);
const moved = transfer(logged, recipient);

const isProven = (logs: readonly UnplacedLog[], succeeded = true) =>
  readStraightPayments(receiptOf(logs, succeeded))(payment);

describe("a payment straight to its payee is proven", () => {
  test("by the use of its authorization with the transfer right behind it, whatever stands around them", () => {
    expect(isProven([authorizationUsed(logged), moved])).toBe(true);
    const others = { ...logged, authorizationNonce: word("7") };
    expect(
      isProven([
        ...[forwarded(others), authorizationUsed(logged), moved],
        ...[authorizationUsed(others), transfer(others)],
      ]),
    ).toBe(true);
  });

  test("in whatever casing addresses and nonce are written", () => {
    const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
    const { asset, payer, payTo, nonce } = payment;
    const written = { asset: upper(asset), payer: upper(payer), payTo: upper(payTo), nonce: upper(nonce) };
    const receipt = receiptOf([authorizationUsed(logged), moved]);
    expect(readStraightPayments(receipt)({ ...payment, ...written })).toBe(true);
  });
});

test.each<[string, UnplacedLog[]]>([
  ["by nothing", []],
  ["by the use alone", [authorizationUsed(logged)]],
  ["by the transfer alone", [moved]],
  ["by a transfer before the use", [moved, authorizationUsed(logged)]],
  ["by a transfer behind another log", [authorizationUsed(logged), forwarded(logged), moved]],
  ["by a cancellation", [authorizationCanceled(logged), moved]],
  ["by a transfer of less", [authorizationUsed(logged), transfer({ ...logged, value: 9_999n }, recipient)]],
  ["by a transfer to the contract", [authorizationUsed(logged), transfer(logged)]],
  ["by a transfer to a stranger", [authorizationUsed(logged), transfer(logged, stranger)]],
  ["by that of another payer", [authorizationUsed(logged), transfer(logged, recipient, token, stranger)]],
  ["by that of another token", [authorizationUsed(logged), transfer(logged, recipient, stranger)]],
  ["by the use in another token", [authorizationUsed(logged, stranger), moved]],
  ["by the use of another nonce", [authorizationUsed({ ...logged, authorizationNonce: word("7") }), moved]],
  ["by what the contract says", [settledLog(logged)]],
])("it is not proven %s", (_, logs) => {
  expect(isProven(logs)).toBe(false);
});

describe("in a transaction of ours that calls the token once", () => {
  const isProvenAlone = (logs: readonly UnplacedLog[]) =>
    readStraightPayments(receiptOf(logs), { isLone: true })(payment);
  const other = { ...logged, authorizationNonce: word("7") };
  const fee = transfer({ ...logged, value: 1n }, stranger);

  test.each<[string, UnplacedLog[]]>([
    ["with another log between the two", [authorizationUsed(logged), forwarded(logged), moved]],
    ["with a fee moved between the two", [authorizationUsed(logged), fee, moved]],
  ])("a payment is proven %s", (_, logs) => {
    expect(isProvenAlone(logs)).toBe(true);
  });

  test.each<[string, UnplacedLog[]]>([
    ["by the use alone", [authorizationUsed(logged)]],
    ["by the transfer alone", [moved]],
    ["by two such transfers", [authorizationUsed(logged), fee, moved, moved]],
    ["beside another use", [authorizationUsed(logged), authorizationUsed(other), moved]],
    ["by another use", [authorizationUsed(other), fee, moved]],
    ["by a cancellation", [authorizationCanceled(logged), fee, moved]],
    ["by a transfer of less", [authorizationUsed(logged), transfer({ ...logged, value: 9_999n }, recipient)]],
  ])("it is not proven %s", (_, logs) => {
    expect(isProvenAlone(logs)).toBe(false);
  });

  test("such a receipt proves nothing for a batch, or for a transaction of somebody else", () => {
    const receipt = receiptOf([authorizationUsed(logged), fee, moved]);
    const proofBy = (data?: Hex) =>
      exactEip3009Settling
        .prove(receipt, { facilitatorContract: contract }, data)
        .find({ payment, recipient });
    expect(proofBy(encodeTransfer(payment))).toEqual({ settled: true });
    expect(proofBy(encodeTransferBatch(token, [{ payment, recipient }]))).toBeUndefined();
    expect(proofBy()).toBeUndefined();
  });
});

test("the logs of a reverted transaction prove nothing", () => {
  expect(isProven([authorizationUsed(logged), moved], false)).toBe(false);
});

test("reading never throws, and noise proves nothing", () => {
  const real = [authorizationUsed(logged), moved, settledLog(logged)];
  fc.assert(
    fc.property(noiseOf([token, contract, recipient], real), (logs) => {
      expect(isProven(logs)).toBe(false);
    }),
    { numRuns: 1_000 },
  );
});

describe("each route has its own proof", () => {
  const proofOf = (signed: SignedPayment, logs: readonly UnplacedLog[]) =>
    exactEip3009Settling
      .prove(receiptOf(logs), { facilitatorContract: contract })
      .find({ payment: signed, recipient });
  const straight = [authorizationUsed(logged), moved];
  const through = [authorizationUsed(logged), transfer(logged), settledLog(logged)];

  test("what went straight is no settlement through the contract, and the other way round", () => {
    expect(proofOf(payment, straight)).toEqual({ settled: true });
    expect(proofOf(payment, through)).toBeUndefined();
    expect(proofOf(signedTo(contract), through)).toEqual({ settled: true });
    expect(proofOf(signedTo(contract), straight)).toBeUndefined();
  });

  test("one that a batch has left out has failed, and one that is not spoken of has not", () => {
    expect(proofOf(payment, [settlementFailed(logged, "0x")])).toMatchObject({ settled: false });
    const other = { ...logged, authorizationNonce: word("7") };
    expect(proofOf(payment, [settlementFailed(other, "0x")])).toBeUndefined();
    expect(proofOf(payment, [settlementFailed(logged, "0x", token)])).toBeUndefined();
    expect(proofOf(payment, [...straight, settlementFailed(logged, "0x")])).toEqual({ settled: true });
  });
});

describe("the effect of a payment is there", () => {
  const words = (...values: readonly (bigint | undefined)[]) =>
    values.map((value) => ({
      codeHash: null,
      word: value === undefined ? undefined : (`0x${uintWord(value)}` as const),
    }));
  const isThere = (...values: readonly (bigint | undefined)[]) => effectOf(payment).isThere(words(...values));

  test("when its authorization was unused, is used, and its payee has the value more", () => {
    expect(isThere(0n, 5n, undefined, 1n, 10_005n)).toBe(true);
  });

  test.each<[string, readonly (bigint | undefined)[]]>([
    ["nothing changed", [0n, 5n, undefined, 0n, 5n]],
    ["it was used before", [1n, 5n, undefined, 1n, 10_005n]],
    ["the payee has less than that", [0n, 5n, undefined, 1n, 10_004n]],
    ["the payee has more than that", [0n, 5n, undefined, 1n, 10_006n]],
    ["the authorization is unused", [0n, 5n, undefined, 0n, 10_005n]],
    ["the token answers nothing", [undefined, undefined, undefined, undefined, undefined]],
  ])("not when %s", (_, values) => {
    expect(isThere(...values)).toBe(false);
  });

  test("where payers pay themselves, when they have as much as before", () => {
    const { isThere } = effectOf(signedTo(logged.payer));
    expect(isThere(words(0n, 5n, undefined, 1n, 5n))).toBe(true);
    expect(isThere(words(0n, 5n, undefined, 0n, 5n))).toBe(false);
  });
});
