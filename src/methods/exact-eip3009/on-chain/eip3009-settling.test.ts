import fc from "fast-check";
import { encodeErrorResult } from "viem";
import { describe, expect, test } from "vitest";
import {
  authorizationUsed,
  contract,
  forwarded,
  noiseOf,
  stranger as other,
  payment,
  receiptOf,
  recipient,
  settledLog,
  settlementFailed,
  token,
  transfer,
  type UnplacedLog,
  word,
} from "../../../../test/support/logs.ts";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import type { Hex } from "../../../protocol/hex.ts";
import { provesForwarding, type ReceivedPayment } from "../../on-chain/payouts.ts";
import { readSettlements } from "./eip3009-settling.ts";

const settlement = (of: ReceivedPayment) => [authorizationUsed(of), transfer(of), settledLog(of)];

const proofs = (logs: readonly UnplacedLog[], succeeded = true) =>
  readSettlements(receiptOf(logs, succeeded), contract);

describe("a settlement is proven", () => {
  test("by Settled together with the token's AuthorizationUsed and Transfer", () => {
    expect(proofs(settlement(payment)).find(payment)).toEqual({ settled: true });
  });

  test("in whatever casing addresses and nonce are written", () => {
    const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
    expect(
      proofs(settlement(payment)).find({
        asset: upper(payment.asset),
        payer: upper(payment.payer),
        authorizationNonce: upper(payment.authorizationNonce),
        value: payment.value,
        recipient: upper(payment.recipient),
      }),
    ).toEqual({ settled: true });
  });

  test("for each of several payments of one payer", () => {
    const second = { ...payment, authorizationNonce: word("7") };
    const found = proofs([...settlement(payment), ...settlement(second)]);
    expect([found.find(payment), found.find(second)]).toEqual([{ settled: true }, { settled: true }]);
  });
});

describe("a settlement is not proven", () => {
  test.each<[string, UnplacedLog[]]>([
    ["by nothing", []],
    ["without Settled", [authorizationUsed(payment), transfer(payment)]],
    ["without Transfer", [authorizationUsed(payment), settledLog(payment)]],
    ["without AuthorizationUsed", [transfer(payment), settledLog(payment)]],
    [
      "by a Settled of another contract",
      [authorizationUsed(payment), transfer(payment), settledLog(payment, other)],
    ],
    [
      "by a Transfer of another token",
      [authorizationUsed(payment), transfer(payment, contract, other), settledLog(payment)],
    ],
    [
      "by a Transfer past the contract",
      [authorizationUsed(payment), transfer(payment, recipient), settledLog(payment)],
    ],
    [
      "by a Transfer of another payer",
      [authorizationUsed(payment), transfer({ ...payment, payer: other }), settledLog(payment)],
    ],
    [
      "by a Transfer of less",
      [authorizationUsed(payment), transfer({ ...payment, value: 9_999n }), settledLog(payment)],
    ],
    [
      "by the authorization of another nonce",
      [
        authorizationUsed({ ...payment, authorizationNonce: word("7") }),
        transfer(payment),
        settledLog(payment),
      ],
    ],
    [
      "by an AuthorizationUsed of another token",
      [authorizationUsed(payment, other), transfer(payment), settledLog(payment)],
    ],
    ["when another value was settled", settlement({ ...payment, value: 9_999n })],
    ["when another recipient was paid", settlement({ ...payment, recipient: other })],
    ["when another token was settled", settlement({ ...payment, asset: other })],
    [
      "by a log that is no event",
      [authorizationUsed(payment), transfer(payment), { ...settledLog(payment), topics: [] }],
    ],
  ])("%s", (_, logs) => {
    expect(proofs(logs).find(payment)).toBeUndefined();
  });

  test("by the logs of a reverted transaction", () => {
    expect(proofs(settlement(payment), false).find(payment)).toBeUndefined();
  });

  test("twice by one Transfer", () => {
    const second = { ...payment, authorizationNonce: word("7") };
    const found = proofs([
      authorizationUsed(payment),
      transfer(payment),
      settledLog(payment),
      authorizationUsed(second),
      settledLog(second),
    ]);
    expect([found.find(payment), found.find(second)]).toEqual([{ settled: true }, undefined]);
  });
});

describe("a failure is proven", () => {
  const reason = encodeErrorResult({
    abi: [{ type: "error", name: "Error", inputs: [{ type: "string" }] }],
    args: ["FiatTokenV2: authorization is expired"],
  });

  test.each<[string, Hex, string]>([
    ["the token's words", reason, "FiatTokenV2: authorization is expired"],
    [
      "an error of the contract",
      encodeErrorResult({ abi: x402FacilitatorAbi, errorName: "TokenCallFailed", args: [token] }),
      "TokenCallFailed",
    ],
    ["nothing", "0x", "no reason given"],
  ])("by SettlementFailed, with %s as the reason", (_, data, failure) => {
    expect(proofs([settlementFailed(payment, data)]).find(payment)).toEqual({ settled: false, failure });
  });

  test("for this payment alone", () => {
    const second = { ...payment, authorizationNonce: word("7") };
    const found = proofs([settlementFailed(payment, reason), ...settlement(second)]);
    expect([found.find(payment)?.settled, found.find(second)?.settled]).toEqual([false, true]);
  });

  test("not by the SettlementFailed of another contract", () => {
    expect(proofs([settlementFailed(payment, reason, token)]).find(payment)).toBeUndefined();
  });

  test("not for a payment that the same transaction settled before", () => {
    const found = proofs([...settlement(payment), settlementFailed(payment, reason)]);
    expect(found.find(payment)).toEqual({ settled: true });
  });
});

test("reading never throws, and noise proves nothing", () => {
  const real = [...settlement(payment), settlementFailed(payment, "0x")];
  fc.assert(
    fc.property(noiseOf([token, contract, recipient], real), (logs) => {
      expect(proofs(logs).find(payment)?.settled).not.toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

describe("a forwarding is proven", () => {
  /** The contract pays, and then says so. */
  const paid = (of: ReceivedPayment) => transfer(of, of.recipient, of.asset, contract);
  const isProven = (logs: readonly UnplacedLog[], succeeded = true) =>
    provesForwarding("Forwarded", receiptOf(logs, succeeded), contract, payment);

  test("by Forwarded together with the token's Transfer, in whatever casing", () => {
    expect(isProven([paid(payment), forwarded(payment)])).toBe(true);
    const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
    const asWritten = {
      asset: upper(payment.asset),
      payer: upper(payment.payer),
      authorizationNonce: upper(payment.authorizationNonce),
      value: payment.value,
      recipient: upper(recipient),
    };
    expect(
      provesForwarding("Forwarded", receiptOf([paid(payment), forwarded(payment)]), contract, asWritten),
    ).toBe(true);
  });

  test.each<[string, UnplacedLog[]]>([
    ["nothing", []],
    ["Transfer alone", [paid(payment)]],
    ["Forwarded alone", [forwarded(payment)]],
    ["Forwarded of another contract", [paid(payment), forwarded(payment, other)]],
    ["Settled", [paid(payment), settledLog(payment)]],
    ["a Transfer of another token", [paid({ ...payment, asset: other }), forwarded(payment)]],
    ["a Transfer to another account", [paid({ ...payment, recipient: other }), forwarded(payment)]],
    ["a Transfer of less", [paid({ ...payment, value: 9_999n }), forwarded(payment)]],
    ["a Transfer from the payer", [transfer(payment, recipient), forwarded(payment)]],
    ["another nonce", [paid(payment), forwarded({ ...payment, authorizationNonce: word("7") })]],
    ["another payer", [paid(payment), forwarded({ ...payment, payer: other })]],
    ["another token", [paid(payment), forwarded({ ...payment, asset: other })]],
    ["another value", [paid(payment), forwarded({ ...payment, value: 9_999n })]],
    ["another recipient", [paid(payment), forwarded({ ...payment, recipient: other })]],
  ])("not by %s", (_, logs) => {
    expect(isProven(logs)).toBe(false);
  });

  test("not by a transaction that was reverted", () => {
    expect(isProven([paid(payment), forwarded(payment)], false)).toBe(false);
  });
});
