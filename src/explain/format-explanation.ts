import { mistakes } from "../protocol/mistakes.ts";
import { escapeControls } from "../util/escape-controls.ts";
import { errorsSection } from "./errors-section.ts";
import type { Explanation } from "./explain.ts";

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
    ...findings.flatMap(({ mistake, at, got, expected, fix }, index) => [
      "",
      `${index + 1}. ${mistakes[mistake].title}${at === "" ? "" : ` (${at})`}`,
      ...(got === undefined ? [] : [`   got:      ${got}`]),
      ...(expected === undefined ? [] : [`   expected: ${expected}`]),
      `   why:      ${mistakes[mistake].why}`,
      `   fix:      ${fix}`,
      `   more:     ${errorsSection(mistake)}`,
    ]),
  ]
    .map(escapeControls)
    .join("\n");
}
