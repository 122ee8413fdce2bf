import { type Difference, findDifferences } from "../fixtures/engine/answer.ts";
import type { Comparison } from "./comparison.ts";

/** Headers that carry meaning: one that is not expected is a difference. */
const telling = ["allow", "location", "retry-after", "www-authenticate", "x-settlement-state"];

/** Compares the status, the headers that matter, and the body to the letter, placeholders aside. */
export const compareExactly: Comparison = (expected, actual) => {
  const found = findDifferences(expected, actual);
  if (expected.kind !== "json" || actual.kind !== "json") return found;
  const unexpected = telling.flatMap((name): readonly Difference[] => {
    const got = actual.headers[name];
    if (got === undefined || expected.headers[name] !== undefined) return [];
    return [{ at: `header ${name}`, expected: "nothing", got: JSON.stringify(got) }];
  });
  return [...found, ...unexpected];
};
