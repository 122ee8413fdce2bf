import { expect, test } from "vitest";
import { formatAmount, formatUnits, parseAmount, unitsOf } from "./token-units.ts";

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
