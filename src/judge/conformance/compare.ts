import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import {
  type Difference,
  type FixtureAnswer,
  findDifferences,
  isBegun,
} from "../../fixtures/engine/answer.ts";
import { isSituation } from "../../protocol/catalogue.ts";
import { situationTexts } from "../../protocol/catalogue-texts.ts";
import {
  answerRules,
  namingRules,
  ofVersion,
  type Rule,
  type Rules,
  rules,
} from "../../protocol/specification.ts";

/** Finds the differences between an answer and the expected one. */
export type Comparison = (expected: FixtureAnswer, actual: FixtureAnswer) => readonly Difference[];

/** Headers with a meaning; an unexpected one is a difference. */
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
 * - of a verify: `isValid` and `invalidReason`;
 * - of a settle: `success`, `errorReason`, `network`, and `transaction`, which is a hash on success and `""`
 *   otherwise;
 * - `payer`, where the answer has one;
 * - of an answer without a verdict: that it does not say `isValid: true` or `success: true`.
 *
 * Null counts as absent. Headers, messages and additional members are not compared.
 */
export const compareContract: Comparison = (expected, actual) => {
  if (expected.kind !== "json" || actual.kind !== "json") return findDifferences(expected, actual);
  if (expected.status !== actual.status) {
    return [{ at: "status", expected: `${expected.status}`, got: `${actual.status}` }];
  }
  const members = (expected.status === 200 ? verdictMembers : noVerdictMembers).filter(
    (name) => name !== "payer" || read(actual, name) !== undefined,
  );
  return findDifferences(reduce(expected, members), reduce(actual, members));
};

type JsonAnswer = Extract<FixtureAnswer, { kind: "json" }>;

const noVerdictMembers = ["isValid", "success"];
const verdictMembers = [...noVerdictMembers, "invalidReason", "errorReason", "transaction", "payer"];

function reduce(answer: JsonAnswer, members: readonly string[]): JsonAnswer {
  const { kind, status } = answer;
  const isSettle = read(answer, "success") !== undefined;
  const body: Record<string, unknown> = {};
  for (const name of isSettle && status === 200 ? [...members, "network"] : members) {
    const value = read(answer, name);
    // Without a verdict, a missing member is as good as `false`.
    if (status !== 200) body[name] = value === true;
    else if (value !== undefined) body[name] = name === "payer" ? String(value).toLowerCase() : value;
  }
  return { kind, status, headers: {}, body };
}

function read({ body }: JsonAnswer, member: string): unknown {
  return Reflect.get(body, member) ?? undefined;
}

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

/**
 * How serious it is that an answer differs from the table.
 * - `wrong`: a sentence of the public specification decides the payment, and the verdict is another; money moves
 *   twice, or without a settle; a success names another payer or network; or the answer has a shape that strict public
 *   clients reject.
 * - `differs`: the verdict is right; a reason, a status or a member is another, which the specification leaves open.
 * - `kit`: the row is a choice of this kit, such as its limits and API keys.
 */
export type Level = "wrong" | "differs" | "kit";

/** The level, and the sentence of the specification that it is based on. */
export type Classified = { level: Level; rule?: Rule };

/** True if two spellings name one network: `base` and `eip155:8453`. */
export type SameNetwork = (one: string, other: string) => boolean;

/** The verdict that a client reads from an answer. */
type Verdict = "yes" | "no" | "unreadable";

/**
 * Classifies an answer that differs from the expected one.
 *
 * @param before answers to earlier requests, whose success may be repeated
 * @param isSameNetwork by default, networks are the same that are spelled so
 */
export function classifyDifference(
  scenario: Pick<ScenarioRow, "situation" | "x402Version" | "operation">,
  expected: FixtureAnswer,
  actual: FixtureAnswer,
  before: readonly FixtureAnswer[] = [],
  isSameNetwork: SameNetwork = (one, other) => one === other,
): Classified {
  const { operation, x402Version } = scenario;
  const rule = ruleOf(scenario, expected);
  if (rule === undefined) return { level: "kit" };
  const wanted = verdictOf(expected, operation);
  const got = verdictOf(actual, operation);
  // The same success again is no second payment.
  const isRepeat = got === "yes" && before.some((earlier) => isSameSuccess(earlier, actual));
  if ((wanted === "yes") !== (got === "yes") && !isRepeat) return { level: "wrong", rule };
  if (wanted === "yes" && got === "yes" && namesAnother(expected, actual, isSameNetwork)) {
    return { level: "wrong", rule: ofVersion(namingRules[operation], x402Version) ?? rule };
  }
  const isVerdict = actual.kind === "json" && actual.status === 200;
  if (isVerdict && lacksMembers(actual, operation)) {
    return { level: "wrong", rule: ofVersion(answerRules[operation], x402Version) ?? rule };
  }
  return { level: "differs", rule };
}

/** Rows that are based on another sentence than their situation in the catalogue, or on none: those are choices of this kit. */
export const rulesOfRows: Readonly<Record<string, Rules | null>> = {
  "success.funded": rules.steps,
  "invalid_payload.no_payment": rules.request,
  "invalid_payload.not_an_object": rules.request,
  "invalid_payload.number_for_value": null,
  "invalid_payload.huge_value": rules.balance,
  "invalid_payload.signature_not_hexadecimal": rules.signature,
  "invalid_payload.signature_too_long": null,
  "invalid_payload.nested_deeply": null,
  "invalid_payment_requirements.no_requirements": rules.request,
  "invalid_payment_requirements.two_amounts": null,
  "invalid_payment_requirements.two_recipients": null,
  // Version 1 takes more than is asked for.
  "invalid_exact_evm_payload_authorization_value.value_above": { 2: rules.amount[2] },
  "invalid_exact_evm_payload_authorization_value.price_raised_afterwards": null,
  "invalid_exact_evm_payload_authorization_valid_before.expires_too_soon": null,
  "invalid_exact_evm_payload_signature.high_s": rules.simulation,
  "bad_request.not_json": rules.request,
  "bad_request.empty": rules.request,
};

/**
 * The sentence that a row is based on; undefined for a choice of this kit: its limits, its API keys, its short form of the
 * requirements, its strictness about types, and its treatment of states that the specification does not define.
 *
 * @param expected the answer to it, which names its situation in the catalogue
 */
export function ruleOf(
  { situation, x402Version }: Pick<ScenarioRow, "situation" | "x402Version">,
  expected: FixtureAnswer,
): Rule | undefined {
  const ofRow = rulesOfRows[situation];
  if (ofRow === null) return undefined;
  const named: unknown = expected.kind === "json" ? Reflect.get(expected.body, "situation") : undefined;
  const ofSituation = isSituation(named) ? situationTexts[named].rule : undefined;
  return ofVersion(ofRow ?? ofSituation, x402Version);
}

/** The parts of an answer that a client reads. */
export function verdictOf(answer: FixtureAnswer, operation: ScenarioRow["operation"]): Verdict {
  if (answer.kind !== "json") return "unreadable";
  const verdict: unknown = Reflect.get(answer.body, operation === "verify" ? "isValid" : "success");
  if (typeof verdict !== "boolean") return "unreadable";
  return verdict ? "yes" : "no";
}

/** Returns true if a success is of another payer, or on another network. */
function namesAnother(expected: FixtureAnswer, actual: FixtureAnswer, isSameNetwork: SameNetwork): boolean {
  if (expected.kind !== "json" || actual.kind !== "json") return false;
  const differs = (member: string, isSame: SameNetwork) => {
    const [wanted, got] = [read(expected, member), read(actual, member)];
    return typeof wanted === "string" && typeof got === "string" && !isSame(wanted, got);
  };
  return (
    differs("payer", (one, other) => one.toLowerCase() === other.toLowerCase()) ||
    differs("network", (one, other) => one === other || isSameNetwork(one, other))
  );
}

/** Returns true if members are missing that strict public clients require (specification, 5.3.2 and 5.4.2). */
function lacksMembers(answer: FixtureAnswer, operation: ScenarioRow["operation"]): boolean {
  if (answer.kind !== "json") return true;
  const read = (member: string): unknown => Reflect.get(answer.body, member);
  if (operation === "verify") return typeof read("isValid") !== "boolean";
  if (typeof read("success") !== "boolean" || typeof read("network") !== "string") return true;
  const transaction = read("transaction");
  if (typeof transaction !== "string") return true;
  return read("success") === true && transaction === "";
}

function isSameSuccess(earlier: FixtureAnswer, actual: FixtureAnswer): boolean {
  if (earlier.kind !== "json" || actual.kind !== "json") return false;
  const hashes = [earlier, actual].map(({ body }): unknown => Reflect.get(body, "transaction"));
  return typeof hashes[0] === "string" && hashes[0] !== "" && hashes[0] === hashes[1];
}
