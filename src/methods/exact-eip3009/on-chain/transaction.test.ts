import { describe, expect, test } from "vitest";
import { networks } from "../../../protocol/networks.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { paymentOf } from "../payload.ts";
import { encodeSettle, encodeSettleBatch } from "./calldata.ts";
import { countBatch, settleTransaction } from "./transaction.ts";

describe("a batch holds as many payments as", () => {
  const limits = { maxPayments: 50, maxFeePerGas: 1n, maxCost: 10n ** 30n };
  const callsWith = (signatureBytes: number, count = 60): SettleCall[] =>
    Array.from({ length: count }, (_, index) => call(index, signatureBytes));

  test("a transaction may have", () => {
    expect(countBatch(callsWith(65), limits)).toBe(50);
    expect(countBatch(callsWith(65, 7), limits)).toBe(7);
    expect(countBatch([], limits)).toBe(0);
  });

  test("64 KiB of calldata hold, and one in any case", () => {
    const calls = callsWith(4_096);
    const fitting = countBatch(calls, limits);
    expect(settleTransaction(calls.slice(0, fitting)).data.length / 2).toBeLessThan(65_536);
    expect(fitting).toBeGreaterThan(12);
    expect(countBatch(callsWith(70_000), limits)).toBe(1);
  });

  test("the gas of one transaction covers, which is then never cut down", () => {
    for (const bytes of [65, 500, 1_000, 1_500, 2_000]) {
      const calls = callsWith(bytes);
      const { gas } = settleTransaction(calls.slice(0, countBatch(calls, limits)));
      expect(gas).toBeLessThan(2n ** 24n);
    }
  });

  test("may be paid for: none where the first alone costs too much", () => {
    const calls = callsWith(65);
    const maxFeePerGas = 3n;
    for (const maxCost of [1_600_000n, 3_000_000n, 9_000_000n]) {
      const fitting = countBatch(calls, { ...limits, maxFeePerGas, maxCost });
      expect(fitting).toBeGreaterThan(0);
      expect(settleTransaction(calls.slice(0, fitting)).gas * maxFeePerGas).toBeLessThanOrEqual(maxCost);
    }
    expect(countBatch(calls, { ...limits, maxFeePerGas, maxCost: 1_500_000n })).toBe(0);
  });
});

const call = (recipient: number, signatureBytes = 65): SettleCall => ({
  payment: paymentOf(networks.base.usdc.address, {
    authorization: {
      from: `0x${"11".repeat(20)}`,
      to: `0x${"fa".repeat(20)}`,
      value: 1n,
      validAfter: 0n,
      validBefore: 2n ** 40n,
      nonce: `0x${"22".repeat(32)}`,
    },
    signature: `0x${"33".repeat(signatureBytes)}`,
  }),
  recipient: `0x${recipient.toString(16).padStart(40, "0")}`,
});

test("one payment is settled by settle, several by settleBatch", () => {
  expect(settleTransaction([call(1)]).data).toBe(encodeSettle(call(1)));
  const calls = [call(1), call(2), call(1)];
  expect(settleTransaction(calls).data).toBe(encodeSettleBatch(networks.base.usdc.address, calls));
  expect(() => settleTransaction([])).toThrow(RangeError);
});

test("50 payments fit in one transaction with room for all pulls to burn what they may", () => {
  const calls = Array.from({ length: 50 }, (_, index) => call(index));
  const { gas } = settleTransaction(calls);
  expect(gas).toBeGreaterThan(50n * 250_000n + 500_000n);
  expect(gas).toBeLessThan(2n ** 24n);
});

test("a gas limit never exceeds what a transaction may ask for", () => {
  const calls = Array.from({ length: 100 }, (_, index) => call(index));
  expect(settleTransaction(calls).gas).toBe(2n ** 24n);
});

test("a long signature of a wallet is paid for", () => {
  const [short, long] = [settleTransaction([call(1)]), settleTransaction([call(1, 65 + 1_024)])];
  expect(long.gas - short.gas).toBeGreaterThanOrEqual(1_024n * 40n);
});
