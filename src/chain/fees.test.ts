import { expect, test } from "vitest";
import type { NetworkConfig } from "../config/serve-config.ts";
import { networks } from "../protocol/networks.ts";
import { boundTip, estimateFees, feeCap, isReplacementDue, raiseFees, readFeeHistory } from "./fees.ts";

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

test("fees never exceed the network's limit, the tip included, and leave a no-op room to outbid them", () => {
  const base = config("base", 9n * gwei);
  expect(estimateFees(head(9n * gwei), base)).toEqual({
    maxFeePerGas: 8n * gwei,
    maxPriorityFeePerGas: 1_000_000n,
  });
  expect(feeCap(base, "noop")).toBe(9n * gwei);
  expect(estimateFees(head(gwei), config("polygon", 18n * gwei))).toEqual({
    maxFeePerGas: 16n * gwei,
    maxPriorityFeePerGas: 16n * gwei,
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

test("the highest fees of a settle can still be outbid by a no-op, whatever the network's limit", () => {
  for (let maxFeePerGas = 1n; maxFeePerGas < 100n; maxFeePerGas++) {
    const network = config("base", maxFeePerGas);
    const highest = { maxFeePerGas: feeCap(network, "settle"), maxPriorityFeePerGas: 0n };
    expect(raiseFees(highest, highest, feeCap(network, "noop"))).toBeDefined();
  }
});

test("a replacement offers an eighth more, rounded up, or what the chain asks now, and nothing above the cap", () => {
  const old = { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n };
  const raised = { maxFeePerGas: 113n, maxPriorityFeePerGas: 12n };
  expect(raiseFees(old, old, 113n)).toEqual(raised);
  expect(raiseFees(old, old, 112n)).toBeUndefined();
  const current = { maxFeePerGas: 200n, maxPriorityFeePerGas: 5n };
  expect(raiseFees(old, current, 200n)).toEqual({ ...raised, maxFeePerGas: 200n });
});

test("a transaction is replaced when six blocks have passed without a receipt", () => {
  const base = config("base", gwei);
  expect([11_999, 12_000].map((waitedMs) => isReplacementDue(base, waitedMs))).toEqual([false, true]);
});

test.each([
  [
    { baseFeePerGas: ["0x5", "0x9", "0x7"], reward: [["0x1"], ["0x3"], ["0x2"]] },
    { baseFeePerGas: 9n, tip: 3n },
  ],
  [
    { baseFeePerGas: ["0x5"], reward: null },
    { baseFeePerGas: 5n, tip: 0n },
  ],
  [
    { baseFeePerGas: "0x5", reward: [[], "0x1", [7]] },
    { baseFeePerGas: 0n, tip: 0n },
  ],
  [undefined, { baseFeePerGas: 0n, tip: 0n }],
])("of a fee history the highest count, and what cannot be read is nothing", (result, highest) => {
  expect(readFeeHistory({ result })).toEqual(highest);
});
