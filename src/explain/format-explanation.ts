import { escapeControls } from "../util/escape-controls.ts";
import { describeMistake } from "./describe-mistake.ts";
import type { Explanation } from "./explain.ts";
import { explanationOf } from "./explain-refusal.ts";

/** An explanation as text for a terminal. */
export function formatExplanation({ kind, findings, says }: Explanation): string {
  if (findings.length === 0 && says !== undefined) return escapeControls(says);
  if (findings.length === 0) {
    return "Nothing is wrong with it as far as can be told without the chain: balance, blacklist and whether the authorization was used before are not looked at.";
  }
  const what = kind === undefined ? "" : ` in this ${kind}`;
  const count = findings.length === 1 ? "One thing is" : `${findings.length} things are`;
  return [
    `${count} wrong${what}:`,
    ...findings.flatMap((found, index) => {
      const [title, ...facts] = describeMistake(explanationOf(found), "   ");
      return ["", `${index + 1}. ${title}`, ...facts];
    }),
  ].join("\n");
}
