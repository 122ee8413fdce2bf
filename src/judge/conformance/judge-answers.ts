import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import {
  type Difference,
  differenceLine,
  type FixtureAnswer,
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
import type { Level, Verdict } from "../frame/run-cases.ts";
import { read, verdictOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import type { Contradiction } from "./moved-money.ts";

/** The facts about a facilitator in one scenario. */
export type ConformanceFacts = {
  scenario: ScenarioRow;
  /** Where an answer differs from the expected one. */
  differences: readonly Difference[];
  /** The answers that were compared last; undefined where none came. */
  compared: { expected: FixtureAnswer; actual: FixtureAnswer } | undefined;
  /** The answers to earlier requests of the scenario. */
  before: readonly FixtureAnswer[];
  /** What the chain says against the answers: it outweighs them. */
  contradictions: readonly Contradiction[];
};

/** A completely different answer has many differences; the first ones are enough. */
const mostDifferences = 6;

/** Longer than any sentence of the service. */
const mostCharacters = 300;

/** Makes the function that judges a facilitator by its answers, and by what the chain says against them. */
export function createConformanceJudge({
  isKit,
  environment,
}: Pick<FoundFacilitator, "isKit" | "environment">) {
  const isSameNetwork: SameNetwork = (one, other) =>
    environment.networks.some(({ name, caip2 }) =>
      [one, other].every((text) => [name, caip2].includes(text)),
    );

  function classify({ scenario, compared, before, contradictions: [first] }: ConformanceFacts): Classified {
    if (first !== undefined) return { level: "wrong", rule: first.rule };
    // A facilitator of this kit must follow the table exactly.
    if (isKit || compared === undefined) return { level: "wrong" };
    return classifyDifference(scenario, compared.expected, compared.actual, before, isSameNetwork);
  }

  return (facts: ConformanceFacts): Verdict => {
    const differences = differencesOf(facts);
    const [first, ...others] = differences.map(differenceLine);
    if (first === undefined) return { verdict: "passed", text: "passed", level: "good" };
    const { level, rule } = classify(facts);
    const more = differences.length - mostDifferences;
    return {
      verdict: "failed",
      text: others.length === 0 ? first : `${first}, and ${others.length} more`,
      level,
      seen: [
        ...differences.slice(0, mostDifferences).flatMap(describeDifference),
        ...(more > 0 ? [`and ${more} more`] : []),
      ],
      notes:
        rule === undefined || level !== "wrong"
          ? []
          : [`Specification v${facts.scenario.x402Version}, ${rule.section}: ${rule.says}`],
      rule,
    };
  };
}

/** What the chain says against the answers, and where these differ from the expected ones. */
export function differencesOf({ contradictions, differences }: ConformanceFacts): readonly Difference[] {
  return [...contradictions.map(({ difference }) => difference), ...differences];
}

function describeDifference({ at, expected, got }: Difference): string[] {
  return [at, `  - ${shorten(expected)}`, `  + ${shorten(got)}`];
}

function shorten(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

/** The status of an answer; undefined where none came. */
export function statusOf(answer: FixtureAnswer | undefined): number | undefined {
  return answer !== undefined && isBegun(answer) ? answer.status : undefined;
}

/** The level, and the sentence of the specification that it is based on. */
export type Classified = { level: Level; rule?: Rule };

/** True if two spellings name one network: `base` and `eip155:8453`. */
export type SameNetwork = (one: string, other: string) => boolean;

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
