import { escapeControls } from "../../util/text.ts";
import type { Explanation } from "./explain-input.ts";
import { explanationOf, type RefusalExplanation } from "./explain-refusal.ts";

/** An explanation as text for a terminal. */
export function formatExplanation({ findings, ...about }: Explanation): string {
  return formatExplanations(findings.map(explanationOf), about);
}

/** What a chain was asked about a payment: whether its authorization was used, or also whether the payer can pay. */
export type KnownOfChain = "nothing" | "use" | "state";

/** All that is wrong with something, as text for a terminal. */
export function formatExplanations(
  explanations: readonly RefusalExplanation[],
  { kind, says, known = "nothing" }: Omit<Explanation, "findings"> & { known?: KnownOfChain },
): string {
  if (explanations.length === 0) return escapeControls(says ?? nothingWrong(kind, known));
  const what = kind === undefined ? "" : ` in this ${kind}`;
  const count = explanations.length === 1 ? "One thing is" : `${explanations.length} things are`;
  return [
    `${count} wrong${what}:`,
    ...explanations.flatMap((explanation, index) => {
      const [title, ...facts] = describeMistake(explanation, "   ");
      return ["", `${index + 1}. ${title}`, ...facts];
    }),
  ].join("\n");
}

/** Lines for a terminal about one mistake: its title, and what is known of it below, indented. */
export function describeMistake(
  { title, at, got, expected, why, fix, more }: RefusalExplanation,
  indent: string,
): readonly string[] {
  const facts = { got, expected, why, fix, more };
  return [
    `${title}${at === "" ? "" : ` (${at})`}`,
    ...Object.entries(facts).flatMap(([name, fact]) =>
      fact === null || fact === "" ? [] : [`${indent}${`${name}:`.padEnd(9)} ${fact}`],
    ),
  ].map(escapeControls);
}

function nothingWrong(kind: Explanation["kind"], known: KnownOfChain): string {
  if (kind === "challenge") {
    return "Nothing is wrong with it: each of its offers names what the facilitator settles.";
  }
  if (known === "state") {
    return "Nothing is wrong with it, and nothing on its chain stands in its way: balance, blacklist, pause and authorization were looked up.";
  }
  const open =
    known === "use"
      ? "balance and blacklist"
      : "balance, blacklist and whether the authorization was used before";
  return `Nothing is wrong with it as far as can be told without the chain: ${open} are not looked at.`;
}
