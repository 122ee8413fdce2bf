import { describe, expect, test } from "vitest";
import { describeTime, parseTime, shorten, writeTime } from "./format.ts";

test.each([
  [`0x${"5f".repeat(32)}`, "0x5f5f…5f5f"],
  ["9".repeat(78), "999999…9999"],
  ["10000000000000000", "10000000000000000"],
  ["funded", "funded"],
])("%s is shown as %s", (text, shown) => expect(shorten(text)).toBe(shown));

describe("a time of the payment form", () => {
  test.each([
    ["0", "0"],
    ["1790000000", "1790000000"],
    ["now", "now+0"],
    ["now − 60 s", "now-60"],
    ["now-60", "now-60"],
    ["+600", "now+600"],
    ["now + 10 min", "now+600"],
    ["now + 2 h", "now+7200"],
    [" now - 1 day ", "now-86400"],
    ["2026-01-31T12:00Z", "1769860800"],
    ["2026-01-31T13:00:00+01:00", "1769860800"],
  ])("%s is sent as %s", (text, sent) => {
    const time = parseTime(text);
    expect(time && writeTime(time)).toBe(sent);
  });

  test.each([
    "",
    "soon",
    "-",
    "now 60",
    "now + 5 fortnights",
    "12.5",
    "0x10",
    "2026-01-31",
    "2026-13-01T00:00Z",
  ])("%j is none", (text) => expect(parseTime(text)).toBeUndefined());

  test.each([
    ["0", "0 (always)"],
    ["now − 60 s", "1789999940 · 2026-09-21 14:12:20 UTC · 60 s before the chain's time"],
    ["now + 10 min", "1790000600 · 2026-09-21 14:23:20 UTC · 600 s (10 min) after the chain's time"],
    ["1790000000", "1790000000 · 2026-09-21 14:13:20 UTC · the chain's time"],
    // Milliseconds, as if they were seconds.
    [
      "1790000000000",
      "1790000000000 · +058692-11-03 14:13:20 UTC · 1788210000000 s (20696875 days) after the chain's time",
    ],
  ])("%s is told in seconds, as a date and from the chain's time", (text, told) => {
    const time = parseTime(text);
    expect(time && describeTime(time, 1_790_000_000)).toBe(told);
  });

  test("from now is told without the chain's time where that is not known", () => {
    expect(describeTime({ fromNow: -60 }, undefined)).toBe("60 s before the chain's time");
    expect(describeTime({ at: 1_790_000_000 }, undefined)).toBe("1790000000 · 2026-09-21 14:13:20 UTC");
  });
});
