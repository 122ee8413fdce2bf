import { expect, test } from "vitest";
import { networks } from "../../protocol/networks.ts";
import { formatCoins, formatCount, formatGwei, formatSeconds, plural } from "./units.ts";

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
