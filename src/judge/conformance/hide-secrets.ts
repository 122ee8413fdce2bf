import { type FixtureAnswer, isBegun } from "../../fixtures/engine/answer.ts";
import type { Comparison } from "./compare.ts";

/** Wraps a comparison so that no secret is shown, wherever the facilitator repeats one in its answer. */
export function hideSecrets(compare: Comparison, secrets: readonly string[]): Comparison {
  const hide = (text: string) =>
    secrets.reduce((hidden, secret) => hidden.replaceAll(secret, "<secret>"), text);

  const hideInMembers = <Value, Hidden>(members: object, hideValue: (value: Value) => Hidden) =>
    Object.fromEntries(
      Object.entries(members).map(([name, value]: [string, Value]) => [hide(name), hideValue(value)]),
    );

  function hideInJson(json: unknown): unknown {
    if (typeof json === "string") return hide(json);
    if (Array.isArray(json)) return json.map(hideInJson);
    return typeof json === "object" && json !== null ? hideInMembers(json, hideInJson) : json;
  }

  function hideIn(answer: FixtureAnswer): FixtureAnswer {
    if (!isBegun(answer)) return answer;
    const headers = hideInMembers(answer.headers, hide);
    return answer.kind === "json"
      ? { ...answer, headers, body: hideInMembers(answer.body, hideInJson) }
      : { ...answer, headers, text: hide(answer.text) };
  }

  return (expected, actual) =>
    compare(expected, actual).length === 0 ? [] : compare(expected, hideIn(actual));
}
