import { expect, test } from "vitest";
import type { NetworkConfig } from "../../config/network-config.ts";
import { networks } from "../../protocol/networks.ts";
import { encodeSettle, encodeSettleBatch } from "../contract/calldata.ts";
import type { SettleCall } from "../contract/calls.ts";
import { boundTip, estimateFees, settleTransaction } from "./transaction.ts";

const gwei = 1_000_000_000n;
const config = (name: "base" | "polygon", maxFeePerGas: bigint): NetworkConfig => ({
  ...networks[name],
  facilitatorContract: `0x${"fa".repeat(20)}`,
  rpcUrls: ["http://127.0.0.1"],
  assets: [networks[name].usdc],
  confirmations: 1,
  maxFeePerGas,
});
const head = (baseFeePerGas: bigint) => ({ number: 1n, timestamp: 1n, baseFeePerGas });

test("fees hold while the base fee doubles", () => {
  expect(estimateFees(head(5_000_000n), config("base", gwei))).toEqual({
    maxFeePerGas: 11_000_000n,
    maxPriorityFeePerGas: 1_000_000n,
  });
  expect(estimateFees(head(100n * gwei), config("polygon", 500n * gwei))).toEqual({
    maxFeePerGas: 230n * gwei,
    maxPriorityFeePerGas: 30n * gwei,
  });
});

test("fees never exceed the network's limit, the tip included", () => {
  expect(estimateFees(head(gwei), config("base", gwei))).toEqual({
    maxFeePerGas: gwei,
    maxPriorityFeePerGas: 1_000_000n,
  });
  expect(estimateFees(head(gwei), config("polygon", 2n * gwei))).toEqual({
    maxFeePerGas: 2n * gwei,
    maxPriorityFeePerGas: 2n * gwei,
  });
});

test("the tip can be chosen", () => {
  expect(estimateFees(head(gwei), config("base", 10n * gwei), 3n * gwei)).toEqual({
    maxFeePerGas: 5n * gwei,
    maxPriorityFeePerGas: 3n * gwei,
  });
});

test("a suggested tip is taken between the usual one and the network's limit", () => {
  const base = config("base", gwei);
  expect([0n, 1_000_000n, 2_000_000n, gwei, 50n * gwei].map((tip) => boundTip(tip, base))).toEqual([
    1_000_000n,
    1_000_000n,
    2_000_000n,
    gwei,
    gwei,
  ]);
  expect(boundTip(1n, config("polygon", 500n * gwei))).toBe(30n * gwei);
  expect(boundTip(1n, config("polygon", 20n * gwei))).toBe(20n * gwei);
});

const call = (recipient: number, signatureBytes = 65): SettleCall => ({
  asset: networks.base.usdc.address,
  authorization: {
    from: `0x${"11".repeat(20)}`,
    to: `0x${"fa".repeat(20)}`,
    value: 1n,
    validAfter: 0n,
    validBefore: 2n ** 40n,
    nonce: `0x${"22".repeat(32)}`,
  },
  signature: `0x${"33".repeat(signatureBytes)}`,
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
