import { describeUnset, describeVariable } from "../../config/variables.ts";
import type { Command, Option } from "./command.ts";
import { formatOption } from "./command-line.ts";
import { renderRows } from "./table.ts";

/** What `--help` prints of a command. */
export function describeCommand(name: string, summary: string, { options, variables = [] }: Command): string {
  const ofOptions = Object.entries(options).map(([key, option]) => {
    const { placeholder, positional, mayBeBare } = option;
    const shown = mayBeBare === true ? `[${placeholder}]` : placeholder;
    const value = positional === true || placeholder === undefined ? "" : ` ${shown}`;
    return [`${formatOption(key, option)}${value}`, describeOption(option)] as const;
  });
  const ofVariables = variables.map(
    (key) => [key, `${describeVariable(key).summary} (default: ${describeUnset(key)})`] as const,
  );
  return [
    `x402-kit ${name}: ${summary}`,
    ...(ofOptions.length === 0 ? [] : ["", renderRows(ofOptions)]),
    ...(ofVariables.length === 0 ? [] : ["", "Variables:", renderRows(ofVariables)]),
  ].join("\n");
}

function describeOption({ describe, required, default: usual, variable }: Option): string {
  return [
    describe,
    ...(required === true ? ["(needed)"] : []),
    ...(usual === undefined ? [] : [`(default ${usual})`]),
    ...(variable === undefined ? [] : [`[env: ${variable}]`]),
  ].join(" ");
}
