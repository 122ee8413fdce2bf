import { expect, test } from "vitest";
import { showValue } from "./show-value.ts";

const deep = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);

test.each<[unknown, string]>([
  [undefined, "nothing"],
  [null, "null"],
  ["0x12", '"0x12"'],
  ["a".repeat(100), `"${"a".repeat(79)}…`],
  [{ toString: "x" }, '{"toString":"x"}'],
  [[{ toString: null, valueOf: null }], '[{"toString":null,"valueOf":null}]'],
  [JSON.parse('{"__proto__":{"toJSON":1}}'), '{"__proto__":{"toJSON":1}}'],
  [Object.create(null), "{}"],
  [12n, "a value of type bigint"],
  [() => 1, "a function"],
  [deep, "an array that cannot be shown"],
])("any value is shown, whatever is in it", (value, shown) => {
  expect(showValue(value)).toBe(shown);
});
