import { expect, test } from "vitest";
import { paint, show } from "./terminal.ts";

test("painted text is coloured where there are colours, and the bare text elsewhere", () => {
  const line = `${paint.good("valid")} and ${paint.bad("invalid")}`;
  expect(show(line, false)).toBe("valid and invalid");
  expect(show(line, true)).toBe("\u001b[32mvalid\u001b[39m and \u001b[31minvalid\u001b[39m");
});

test("what is not painted stays as it is", () => {
  expect(show('plain {"a": 1}', true)).toBe('plain {"a": 1}');
});
