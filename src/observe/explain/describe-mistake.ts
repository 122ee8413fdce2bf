import { escapeControls } from "../../util/escape-controls.ts";
import type { RefusalExplanation } from "./explain-refusal.ts";

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
