import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "./json.ts";

test("any JSON is written as by JSON.stringify", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      expect(jsonText(json)).toBe(JSON.stringify(json));
    }),
  );
});

test.each(["[", '{"a":'])("nesting of any depth is written, of %s", (opening) => {
  const depth = 100_000;
  const text = `${opening.repeat(depth)}1${(opening === "[" ? "]" : "}").repeat(depth)}`;
  const json: unknown = JSON.parse(text);
  expect(() => JSON.stringify(json)).toThrow(RangeError);
  expect(jsonText(json)).toBe(text);
});
