import fc from "fast-check";
import { expect, test } from "vitest";
import { cpuMs } from "../../test/support/cpu-time.ts";
import { findJsonProblem } from "./json-problem.ts";

test.each([
  ["{", 'line 1, column 2: the body ends where a key in double quotes or "}" is expected: it is cut off'],
  ['{"a": 1', 'line 1, column 8: the body ends where "," or "}" is expected: it is cut off'],
  ['{"a": "0x12', "line 1, column 12: the body ends within a text: it is cut off"],
  ['{"a": 1,}', 'line 1, column 9: "}" where a key in double quotes is expected'],
  ['{"a": [1, 2,]}', 'line 1, column 13: "]" where a value is expected'],
  [
    "{\n  'a': 1\n}",
    `line 2, column 3: "'" where a key in double quotes or "}" is expected, and JSON has no single quotes`,
  ],
  ['{\n  "a": None\n}', 'line 2, column 8: "None" where a value is expected'],
  ["{a: 1}", 'line 1, column 2: "a" where a key in double quotes or "}" is expected'],
  ['{"a" 1}', 'line 1, column 6: "1" where ":" is expected'],
  ['{"a": 1 "b": 2}', 'line 1, column 9: "\\"" where "," or "}" is expected'],
  ['{"a": 01}', 'line 1, column 8: "1" where "," or "}" is expected'],
  ["{}{}", 'line 1, column 3: "{" behind the end of the JSON'],
  ["paymentPayload=%7B%7D", 'line 1, column 1: "paymentP…" where a value is expected'],
  ["eyJ4NDAyVmVyc2lvbiI6MX0=", 'line 1, column 1: "eyJ4NDAy…" where a value is expected'],
  ["<html>", 'line 1, column 1: "<" where a value is expected'],
  ["", "line 1, column 1: the body ends where a value is expected: it is cut off"],
  ['{"a": "b\nc"}', "line 1, column 9: a line break or control character within a text"],
  ['{"a": "\\x41"}', "line 1, column 8: a backslash that begins no escape of JSON"],
  ["[[}", 'line 1, column 3: "}" where a value or "]" is expected'],
])("%s is no JSON, and the place is named", (json, message) => {
  const { line, column, found } = findJsonProblem(json) ?? {};
  expect(`line ${line}, column ${column}: ${found}`).toBe(message);
});

test("it finds a problem where JSON.parse does, and nowhere else", () => {
  const isJson = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  const nearly = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom("", "}", ",", '"', "x", "\\", "\n", "0", "]", ":", "-"))
    .map(([json, place, extra]) => {
      const at = place % (json.length + 1);
      return `${json.slice(0, at)}${extra}${json.slice(at + (place % 2))}`;
    });
  fc.assert(
    fc.property(fc.oneof(nearly, fc.json(), fc.string()), (text) => {
      const problem = findJsonProblem(text);
      expect(problem === undefined).toBe(isJson(text));
      if (problem !== undefined) expect(problem.offset).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 2_000 },
  );
});

test("many open brackets, and a text of megabytes, neither overflow nor take long", () => {
  const time = cpuMs(() => {
    expect(findJsonProblem("[".repeat(32_768))?.offset).toBe(32_768);
    expect(findJsonProblem(`{"a":`.repeat(6_000))).toBeDefined();
    expect(findJsonProblem(`"${"a".repeat(16_000_000)}`)?.offset).toBe(16_000_001);
    expect(findJsonProblem(`"${"\\n".repeat(32_000)}`)?.offset).toBe(64_001);
  });
  expect(time).toBeLessThan(1_000);
});
