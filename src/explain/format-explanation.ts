import { escapeControls } from "../util/escape-controls.ts";
import { describeMistake } from "./describe-mistake.ts";
import type { Explanation } from "./explain.ts";
import { explanationOf, type RefusalExplanation } from "./explain-refusal.ts";

/** An explanation as text for a terminal. */
export function formatExplanation({ findings, ...about }: Explanation): string {
  return formatExplanations(findings.map(explanationOf), about);
}

/**
 * All that is wrong with something, as text for a terminal.
 *
 * @param about.isUseKnown whether it was found out if the authorization was used
 */
export function formatExplanations(
  explanations: readonly RefusalExplanation[],
  { kind, says, isUseKnown = false }: Omit<Explanation, "findings"> & { isUseKnown?: boolean },
): string {
  if (explanations.length === 0) return escapeControls(says ?? nothingWrong(kind, isUseKnown));
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

function nothingWrong(kind: Explanation["kind"], isUseKnown: boolean): string {
  if (kind === "challenge") {
    return "Nothing is wrong with it: each of its offers names what the facilitator settles.";
  }
  const open = isUseKnown
    ? "balance and blacklist"
    : "balance, blacklist and whether the authorization was used before";
  return `Nothing is wrong with it as far as can be told without the chain: ${open} are not looked at.`;
}
