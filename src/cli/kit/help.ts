import { describeVariable, type VariableName } from "../../config/variables.ts";
import { renderRows, terminalWidth, wrapText } from "../../util/table.ts";
import type { Command, Option } from "./command.ts";
import { formatOption } from "./command.ts";

/** What `--help` prints of a command. */
export function describeCommand(
  name: string,
  summary: string,
  { options, variables = [], exitCodes }: Command,
): string {
  const ofOptions = Object.entries(options).map(([key, option]) => {
    const { placeholder, positional, isRest, mayBeBare } = option;
    const shown = mayBeBare === true ? `[${placeholder}]` : placeholder;
    const value = positional === true || isRest === true || placeholder === undefined ? "" : ` ${shown}`;
    return [`${formatOption(key, option)}${value}`, describeOption(option)] as const;
  });
  const ofVariables = variables.map(
    (key) => [key, `${describeVariable(key).summary} (${describeAbsence(key)})`] as const,
  );
  return [
    ...wrapText(`x402-kit ${name}: ${summary}`, terminalWidth),
    ...(ofOptions.length === 0 ? [] : ["", renderRows(ofOptions)]),
    ...(ofVariables.length === 0 ? [] : ["", "Variables:", renderRows(ofVariables)]),
    ...(exitCodes === undefined ? [] : ["", ...wrapText(`Exit code: ${exitCodes}`, terminalWidth)]),
  ].join("\n");
}

function describeAbsence(name: VariableName): string {
  const { default: usual, unset } = describeVariable(name);
  return usual === undefined ? `when not set: ${unset}` : `default ${usual}`;
}

function describeOption({ describe, required, default: usual, variable }: Option): string {
  return [
    describe,
    ...(required === true ? ["(needed)"] : []),
    ...(usual === undefined || usual === "" ? [] : [`(default ${usual})`]),
    ...(variable === undefined ? [] : [`[env: ${variable}]`]),
  ].join(" ");
}
