import type { ScenarioRow } from "../../fixtures/cases/scenarios.ts";
import { type Difference, differenceLine, type FixtureAnswer } from "../../fixtures/engine/answer.ts";
import type { Operation } from "../../protocol/problems.ts";
import { answerRules, namingRules, ofVersion } from "../../protocol/specification.ts";
import type { Verdict } from "../frame/run-cases.ts";
import { memberOf, verdictOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import type { Contradiction } from "./moved-money.ts";
import { ruleOf } from "./rules-of-rows.ts";

/** The facts about a facilitator in one scenario. */
export type ConformanceFacts = {
  scenario: Pick<ScenarioRow, "situation" | "operation" | "x402Version">;
  /** The differences between the responses and the expected ones. */
  differences: readonly Difference[];
  /** The last compared responses; undefined if none arrived. */
  compared: { expected: FixtureAnswer; actual: FixtureAnswer } | undefined;
  /** The responses to earlier requests of the scenario. */
  before: readonly FixtureAnswer[];
  /** Facts on chain that contradict the responses and outweigh them. */
  contradictions: readonly Contradiction[];
};

/** An entirely different response has many differences; the first few are enough. */
const mostDifferences = 6;

/** Longer than any message of the service. */
const mostCharacters = 300;

/** Creates the function that judges a facilitator by its responses and by contradictions on chain. */
export function createConformanceJudge({
  isKit,
  environment: { networks },
}: Pick<FoundFacilitator, "isKit" | "environment">) {
  const isSameNetwork = (one: string, other: string) =>
    one === other ||
    networks.some(({ name, caip2 }) => [one, other].every((text) => text === name || text === caip2));

  /** Classifies a response that differs from the expected one. */
  function classify({ scenario, compared, before, contradictions }: ConformanceFacts): Classified {
    const [contradiction] = contradictions;
    if (contradiction !== undefined) return { level: "wrong", rule: contradiction.rule };
    // A facilitator of this kit must match the table exactly.
    if (isKit || compared === undefined) return { level: "wrong" };
    const { operation, x402Version } = scenario;
    const { expected, actual } = compared;
    const rule = ruleOf(scenario, expected);
    if (rule === undefined) return { level: "kit" };
    const isYes = verdictOf(actual, operation) === "yes";
    const isDue = verdictOf(expected, operation) === "yes";
    // The same success again is not a second payment.
    const isRepeat = isYes && before.some((earlier) => isSameSuccess(earlier, actual));
    if (isDue !== isYes && !isRepeat) return { level: "wrong", rule };
    if (isDue && isYes && namesAnother(expected, actual)) {
      return { level: "wrong", rule: ofVersion(namingRules[operation], x402Version) ?? rule };
    }
    if (actual.kind === "json" && actual.status === 200 && lacksMembers(actual, operation)) {
      return { level: "wrong", rule: ofVersion(answerRules[operation], x402Version) ?? rule };
    }
    return { level: "differs", rule };
  }

  /** Returns true if a success names another payer or network. */
  function namesAnother(expected: FixtureAnswer, actual: FixtureAnswer): boolean {
    const differs = (member: string, isSame: (one: string, other: string) => boolean) => {
      const [wanted, got] = [memberOf(expected, member), memberOf(actual, member)];
      return typeof wanted === "string" && typeof got === "string" && !isSame(wanted, got);
    };
    const isSamePayer = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
    return differs("payer", isSamePayer) || differs("network", isSameNetwork);
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
        ...differences
          .slice(0, mostDifferences)
          .flatMap(({ at, expected, got }) => [at, `  - ${shorten(expected)}`, `  + ${shorten(got)}`]),
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

/** The contradictions on chain, followed by the differences in the responses. */
export function differencesOf({ contradictions, differences }: ConformanceFacts): readonly Difference[] {
  return [...contradictions.map(({ difference }) => difference), ...differences];
}

function shorten(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

/** The level, and the sentence in the specification that it is based on. */
type Classified = Pick<Verdict, "level" | "rule">;

/** Returns true if members are missing that strict public clients require (specification, 5.3.2 and 5.4.2). */
function lacksMembers(answer: FixtureAnswer, operation: Operation): boolean {
  if (verdictOf(answer, operation) === "unreadable") return true;
  if (operation === "verify") return false;
  const transaction = memberOf(answer, "transaction");
  if (typeof memberOf(answer, "network") !== "string" || typeof transaction !== "string") return true;
  return verdictOf(answer, operation) === "yes" && transaction === "";
}

function isSameSuccess(earlier: FixtureAnswer, actual: FixtureAnswer): boolean {
  const hash = memberOf(actual, "transaction");
  return typeof hash === "string" && hash !== "" && hash === memberOf(earlier, "transaction");
}
