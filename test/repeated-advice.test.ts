import { expect, test } from "vitest";
import { scenarios } from "../src/fixtures/cases/scenarios.ts";
import type { FixtureAnswer } from "../src/fixtures/engine/answer.ts";
import { createFixtureEngine } from "../src/fixtures/engine/engine.ts";
import { parsePaymentRequest } from "../src/methods/methods.ts";
import {
  describeMistake,
  explainRefusal,
  type RefusalExplanation,
} from "../src/observe/explain/explanations.ts";
import { localContracts } from "../src/payer/local-chains.ts";
import { isSituation, situations } from "../src/protocol/catalogue.ts";
import { mistakes } from "../src/protocol/mistakes.ts";
import { parseJson } from "../src/util/json.ts";
import { withoutScenario } from "./support/without-scenario.ts";

/* Cards of the studio, `why` and `explain` say a thing once: what is wrong, why, or what to do. */

const { environment } = createFixtureEngine({ networks: ["base", "base-sepolia"] });

type Said = Pick<RefusalExplanation, "title" | "why" | "fix">;

/** Clauses and commands. A clause of few words, “Sign again”, may begin another advice. */
function partsOf(text: string): string[] {
  const commands = [...text.matchAll(/`((?:x402-kit|up) [^`]+)`|(cast \w+)/g)].map(([command]) => command);
  const clauses = text
    .split(/[.;:,](?=\s|$)/)
    .map((clause) => clause.trim().toLowerCase())
    .filter((clause) => clause.split(" ").length > 3);
  return [...clauses, ...commands];
}

/** Sentences that stand in more than one place. */
function repeatedIn({ title, why, fix }: Said): string[] {
  const parts = [title, why, fix].map((text) => new Set(partsOf(text)));
  const all = parts.flatMap((set) => [...set]);
  return all.filter((part, index) => all.indexOf(part) !== index);
}

test("what repeats a sentence or a command is found", () => {
  const said = {
    title: "The payer holds nothing. Give it more of the token, or less to pay",
    why: "The payer holds nothing.",
    fix: "Give it more of the token, soon, by `x402-kit fund`.",
  };
  expect(repeatedIn(said)).toEqual(["the payer holds nothing", "give it more of the token"]);
  expect(repeatedIn({ ...said, title: "", why: "Call `x402-kit fund`" })).toEqual(["`x402-kit fund`"]);
});

test.each(Object.entries(mistakes))("%s says nothing twice", (_, mistake) => {
  expect(repeatedIn(mistake)).toEqual([]);
});

/** The refusal of an answer, as it comes over HTTP. */
function refusalIn(answer: FixtureAnswer | undefined): Record<string, unknown> | undefined {
  if (answer?.kind !== "json") return undefined;
  const body: Record<string, unknown> = Object.fromEntries(Object.entries(answer.body));
  return isSituation(body.situation) ? body : undefined;
}

const text = (value: unknown) => (typeof value === "string" ? value : undefined);

/** The name of the problem that an answer without a verdict is. */
const problemIn = ({ type }: Record<string, unknown>) => text(type)?.replace(/^.*:/, "");

test("nothing that explains a refusal of the catalogue says a sentence or a command twice", async () => {
  const wrong: string[] = [];
  const explained = new Set<unknown>();
  for (const { plan } of scenarios) {
    const { request, answer, again } = await plan(environment);
    const parsed = parsePaymentRequest(parseJson(request.body ?? "") ?? null);
    for (const body of [answer, again].map(refusalIn)) {
      if (body === undefined) continue;
      const refused = {
        reason: problemIn(body) ?? text(body.errorReason) ?? text(body.invalidReason),
        message: text(body.errorMessage) ?? text(body.invalidMessage) ?? text(body.detail),
        situation: text(body.situation),
        ...{ request: parsed.ok ? parsed.request : undefined, received: request.body, at: Date.now() },
      };
      explained.add(body.situation);
      for (const one of explainRefusal(refused, { contracts: localContracts })) {
        const repeated = repeatedIn(one);
        if (repeated.length > 0) wrong.push(describeMistake(one, "  ").join("\n"));
      }
    }
  }
  expect(wrong).toEqual([]);
  const missing = Object.keys(situations).filter((situation) => !explained.has(situation));
  expect(missing.sort()).toEqual(withoutScenario);
});
