import { expect, test } from "vitest";
import { withoutAdvice } from "./payment-line.ts";

test.each([
  ["It is late. Sign again.", "Sign again.", "It is late."],
  ["It is late. Sign again, and settle at on...", "Sign again, and settle at once.", "It is late."],
  ["It is late. Sign again", "Sign again.", "It is late."],
  ["It is late.", "Sign again.", "It is late."],
  ["Sign again.", "Sign again.", "Sign again."],
])("of %j, where %j stands beside it, is shown %j", (message, advice, shown) => {
  expect(withoutAdvice(message, advice)).toBe(shown);
});
