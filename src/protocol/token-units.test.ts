import { expect, test } from "vitest";
import { networks } from "./networks.ts";
import {
  formatAmount,
  formatCoins,
  formatCount,
  formatGwei,
  formatSeconds,
  formatUnits,
  parseAmount,
  plural,
  unitsOf,
} from "./token-units.ts";

test("a token goes by its symbol, and else by the name that payers sign", () => {
  expect(unitsOf({ name: "Bridged Dollar", symbol: "USDX", decimals: 18 }).symbol).toBe("USDX");
  expect(unitsOf({ name: "EURC", decimals: 6 }).symbol).toBe("EURC");
  expect(unitsOf({ name: "USD Coin", decimals: 6 }).symbol).toBe("USDC");
});

test.each([
  ["10000", 6, "0.01"],
  ["1", 6, "0.000001"],
  ["1000000", 6, "1"],
  ["0", 6, "0"],
  ["1", 18, "0.000000000000000001"],
  ["1500000000000000000", 18, "1.5"],
  ["7", 0, "7"],
  [`1${"0".repeat(77)}`, 6, `1${"0".repeat(71)}`],
])("%s with %i decimals is %s, and back", (amount, decimals, told) => {
  expect(formatUnits(amount, decimals)).toBe(told);
  expect(parseAmount(told, decimals)).toBe(amount);
});

test("an amount of a token that is not known is told in its smallest unit", () => {
  expect(formatAmount("10000", { symbol: "USDC", decimals: 6 })).toBe("0.01 USDC");
  expect(formatAmount("10000", null)).toBe("10,000 units");
  expect(formatAmount("1234567890000", { symbol: "USDC", decimals: 6 })).toBe("1,234,567.89 USDC");
});

test.each(["", ".", "-1", "1e3", "1,5", "0.0000001", "1.2.3", "0x10", "ten"])("%j is no amount", (text) => {
  expect(parseAmount(text, 6)).toBeUndefined();
});

test.each([
  ["1.", "1000000"],
  [".5", "500000"],
  ["00.10", "100000"],
  ["0.1000000000", "100000"],
])("%s is read as people mean it", (text, amount) => expect(parseAmount(text, 6)).toBe(amount));

test.each([
  [0n, "0 ETH"],
  [1n, "0.000000000000000001 ETH"],
  [10n ** 18n, "1 ETH"],
  [1_234_567_890_123_456_789n, "1.234 ETH"],
  [999_999n * 10n ** 18n + 1n, "999,999 ETH"],
  [4_230_000_000_000n, "0.00000423 ETH"],
  [1_005_000_000_000_000n, "0.001 ETH"],
  [50_900_000_000_000_000n, "0.0509 ETH"],
])("%d wei are %s, never more than there is", (wei, text) => {
  expect(formatCoins(wei, networks.base)).toBe(text);
});

test("polygon's coin is POL", () => {
  expect(formatCoins(25n * 10n ** 17n, networks.polygon)).toBe("2.5 POL");
});

test.each([
  [7n, "0.000000007 gwei"],
  [1_500_000n, "0.0015 gwei"],
  [30_000_000_000n, "30 gwei"],
])("%d wei per gas are %s", (wei, text) => {
  expect(formatGwei(wei)).toBe(text);
});

test("numbers have commas, and things are counted", () => {
  expect(formatCount(1_234_567)).toBe("1,234,567");
  expect(formatCount(999n)).toBe("999");
  expect(plural(1, "network")).toBe("1 network");
  expect(plural(2, "network")).toBe("2 networks");
});

test.each([
  [172_800, "2 days"],
  [86_400, "1 day"],
  [5_400, "90 minutes"],
  [61, "61 seconds"],
  [0, "0 seconds"],
])("%d seconds are %s", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});
