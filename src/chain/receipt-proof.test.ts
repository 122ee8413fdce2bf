import fc from "fast-check";
import { encodeAbiParameters, encodeErrorResult, encodeEventTopics } from "viem";
import { describe, expect, test } from "vitest";
import { mockUsdcAbi } from "../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../contracts/x402Facilitator.ts";
import { type Address, type Hex, toHex } from "../protocol/hex.ts";
import type { Receipt } from "./chain.ts";
import { readSettlements } from "./receipt-proof.ts";

type Log = Receipt["logs"][number];

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const word = (digit: string): Hex => `0x${digit.repeat(64)}`;
const [token, contract, recipient] = [address("a"), address("c"), address("e")];
const payment = {
  asset: token,
  payer: address("b"),
  authorizationNonce: word("d"),
  value: 10_000n,
  recipient,
};
type Payment = typeof payment;

const uint = (value: bigint) => encodeAbiParameters([{ type: "uint256" }], [value]);

function log(emitter: Address, topics: readonly (Hex | Hex[] | null)[], data: Hex): Omit<Log, "logIndex"> {
  return { address: emitter, topics: topics.flatMap((topic) => topic ?? []), data };
}

function settled({ asset, payer, authorizationNonce, value, recipient }: Payment, emitter = contract) {
  const args = { token: asset, payer, authorizationNonce };
  const topics = encodeEventTopics({ abi: x402FacilitatorAbi, eventName: "Settled", args });
  const data = encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [recipient, value]);
  return log(emitter, topics, data);
}

function settlementFailed({ asset, payer, authorizationNonce }: Payment, reason: Hex, emitter = contract) {
  const args = { token: asset, payer, authorizationNonce };
  const topics = encodeEventTopics({ abi: x402FacilitatorAbi, eventName: "SettlementFailed", args });
  return log(emitter, topics, encodeAbiParameters([{ type: "bytes" }], [reason]));
}

function authorizationUsed({ asset, payer, authorizationNonce }: Payment, emitter = asset) {
  const args = { authorizer: payer, nonce: authorizationNonce };
  return log(emitter, encodeEventTopics({ abi: mockUsdcAbi, eventName: "AuthorizationUsed", args }), "0x");
}

function transfer({ asset, payer, value }: Payment, to = contract, emitter = asset) {
  const args = { from: payer, to };
  return log(emitter, encodeEventTopics({ abi: mockUsdcAbi, eventName: "Transfer", args }), uint(value));
}

const settlement = (of: Payment) => [authorizationUsed(of), transfer(of), settled(of)];

function proofs(logs: readonly Omit<Log, "logIndex">[], succeeded = true) {
  const receipt: Receipt = {
    hash: word("1"),
    succeeded,
    blockNumber: 1n,
    blockHash: word("2"),
    logs: logs.map((entry, logIndex) => ({ ...entry, logIndex })),
  };
  return readSettlements(receipt, contract);
}

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
  const other = address("9");
  test.each<[string, Omit<Log, "logIndex">[]]>([
    ["by nothing", []],
    ["without Settled", [authorizationUsed(payment), transfer(payment)]],
    ["without Transfer", [authorizationUsed(payment), settled(payment)]],
    ["without AuthorizationUsed", [transfer(payment), settled(payment)]],
    [
      "by a Settled of another contract",
      [authorizationUsed(payment), transfer(payment), settled(payment, other)],
    ],
    [
      "by a Transfer of another token",
      [authorizationUsed(payment), transfer(payment, contract, other), settled(payment)],
    ],
    [
      "by a Transfer past the contract",
      [authorizationUsed(payment), transfer(payment, recipient), settled(payment)],
    ],
    [
      "by a Transfer of another payer",
      [authorizationUsed(payment), transfer({ ...payment, payer: other }), settled(payment)],
    ],
    [
      "by a Transfer of less",
      [authorizationUsed(payment), transfer({ ...payment, value: 9_999n }), settled(payment)],
    ],
    [
      "by the authorization of another nonce",
      [authorizationUsed({ ...payment, authorizationNonce: word("7") }), transfer(payment), settled(payment)],
    ],
    [
      "by an AuthorizationUsed of another token",
      [authorizationUsed(payment, other), transfer(payment), settled(payment)],
    ],
    ["when another value was settled", settlement({ ...payment, value: 9_999n })],
    ["when another recipient was paid", settlement({ ...payment, recipient: other })],
    ["when another token was settled", settlement({ ...payment, asset: other })],
    [
      "by a log that is no event",
      [authorizationUsed(payment), transfer(payment), { ...settled(payment), topics: [] }],
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
      settled(payment),
      authorizationUsed(second),
      settled(second),
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
  const topics = [...settlement(payment), settlementFailed(payment, "0x")].flatMap(({ topics }) => topics);
  const noise = fc.record({
    address: fc.constantFrom(token, contract, recipient),
    topics: fc.array(fc.constantFrom(...topics), { maxLength: 5 }),
    data: fc.uint8Array({ maxLength: 200 }).map(toHex),
  });
  fc.assert(
    fc.property(fc.array(noise, { maxLength: 10 }), (logs) => {
      expect(proofs(logs).find(payment)?.settled).not.toBe(true);
    }),
    { numRuns: 1_000 },
  );
});
