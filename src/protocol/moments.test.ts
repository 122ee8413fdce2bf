import { expect, test } from "vitest";
import { formatMoment, formatSpan } from "./moments.ts";

test.each([
  [1n, "1 s"],
  [119n, "119 s"],
  [300n, "5 min"],
  [330n, "5 min 30 s"],
  [300_000n, "83 h 20 min"],
  [1_000_000n, "11 days 13 h"],
])("%d seconds are said as %s", (seconds, said) => {
  expect(formatSpan(seconds)).toBe(said);
});

test("a time is shown as it was signed, as a date and as a distance", () => {
  expect(formatMoment(1_800_000_300n, 1_800_000_000n)).toBe("1800000300 (2027-01-15 08:05:00 UTC, in 5 min)");
  expect(formatMoment(1_799_999_955n, 1_800_000_000n)).toBe("1799999955 (2027-01-15 07:59:15 UTC, 45 s ago)");
  expect(formatMoment(1_800_000_000n, 1_800_000_000n)).toBe("1800000000 (2027-01-15 08:00:00 UTC, now)");
});

test("a time that is no date stays as it is", () => {
  expect(formatMoment(2n ** 256n - 1n, 1n)).toBe(`${2n ** 256n - 1n}`);
});
