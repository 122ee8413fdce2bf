import {
  type Difference,
  type FixtureAnswer,
  findDifferences,
  isBegun,
} from "../../fixtures/engine/answer.ts";
import type { Operation } from "../../protocol/problems.ts";
import { isObject, membersOf } from "../../util/json.ts";

/** Finds the differences between a response and the expected one. */
export type Comparison = (expected: FixtureAnswer, actual: FixtureAnswer) => readonly Difference[];

/** Headers that carry meaning; an unexpected one is a difference. */
const telling = ["allow", "location", "retry-after", "www-authenticate", "x-settlement-state"];

/** Compares the status, the meaningful headers and the exact body, except for placeholders. */
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

/**
 * Compares what every facilitator must have in common:
 * - the status;
 * - for verify: `isValid` and `invalidReason`;
 * - for settle: `success`, `errorReason`, `network`, and `transaction`, which is a hash on success and otherwise `""`;
 * - `payer`, if the response has one;
 * - for a response without a verdict: that it does not say `isValid: true` or `success: true`.
 *
 * Null counts as absent. Headers, messages and additional members are not compared.
 */
export const compareContract: Comparison = (expected, actual) => {
  if (expected.kind !== "json" || actual.kind !== "json") return findDifferences(expected, actual);
  if (expected.status !== actual.status) {
    return [{ at: "status", expected: `${expected.status}`, got: `${actual.status}` }];
  }
  const members = (expected.status === 200 ? verdictMembers : noVerdictMembers).filter(
    (name) => name !== "payer" || memberOf(actual, name) !== undefined,
  );
  return findDifferences(reduce(expected, members), reduce(actual, members));
};

type JsonAnswer = Extract<FixtureAnswer, { kind: "json" }>;

const noVerdictMembers = ["isValid", "success"];
const verdictMembers = [...noVerdictMembers, "invalidReason", "errorReason", "transaction", "payer"];

function reduce(answer: JsonAnswer, members: readonly string[]): JsonAnswer {
  const { kind, status } = answer;
  const isSettle = memberOf(answer, "success") !== undefined;
  const body: Record<string, unknown> = {};
  for (const name of isSettle && status === 200 ? [...members, "network"] : members) {
    const value = memberOf(answer, name);
    // Without a verdict, a missing member is as good as `false`.
    if (status !== 200) body[name] = value === true;
    else if (value !== undefined) body[name] = name === "payer" ? String(value).toLowerCase() : value;
  }
  return { kind, status, headers: {}, body };
}

/** A member of a response; undefined if it is missing or null. */
export function memberOf(answer: FixtureAnswer, member: string): unknown {
  return answer.kind === "json" ? (membersOf(answer.body)[member] ?? undefined) : undefined;
}

/** Wraps a comparison so that differences never show a secret that the facilitator repeats in its response. */
export function hideSecrets(compare: Comparison, secrets: readonly string[]): Comparison {
  const hide = (text: string) =>
    secrets.reduce((hidden, secret) => hidden.replaceAll(secret, "<secret>"), text);
  const hideIn = (_name: string, value: unknown) => {
    if (typeof value === "string") return hide(value);
    if (!isObject(value) || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [hide(name), member]));
  };
  return (expected, actual) => {
    if (compare(expected, actual).length === 0) return [];
    const { kind: _, ...content } = actual;
    const hidden: object = JSON.parse(JSON.stringify(content), hideIn);
    return compare(expected, { ...actual, ...hidden });
  };
}

/** The status of a response; undefined if none arrived. */
export function statusOf(answer: FixtureAnswer | undefined): number | undefined {
  return answer !== undefined && isBegun(answer) ? answer.status : undefined;
}

/** The verdict that a client reads from a response. */
type Verdict = "yes" | "no" | "unreadable";

/** Reads the verdict as a client does. */
export function verdictOf(answer: FixtureAnswer, operation: Operation): Verdict {
  const verdict = memberOf(answer, operation === "verify" ? "isValid" : "success");
  if (typeof verdict !== "boolean") return "unreadable";
  return verdict ? "yes" : "no";
}
