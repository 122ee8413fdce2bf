import {
  describeUnset,
  describeVariable,
  type VariableName,
  variableNames,
  variablesOf,
} from "../../config/variables.ts";
import type { Option } from "../kit/options.ts";

/**
 * Variables of the environment as options that the command line cannot give: `--help` describes them, and whoever
 * tries `--port` is told where it comes from. Their values are read, and judged together, by src/config.
 */
export function describeVariables(
  belongs: (name: VariableName) => boolean,
): Readonly<Record<string, Option<string | undefined>>> {
  const options = variableNames.filter(belongs).map((name): [string, Option<string | undefined>] => {
    const { summary, example } = describeVariable(name);
    return [
      name.toLowerCase().replaceAll("_", "-"),
      {
        describe: `${summary} (when not set: ${describeUnset(name)})`,
        placeholder: "VALUE",
        env: name,
        environmentOnly: true,
        example,
        read: (text) => text,
      },
    ];
  });
  return Object.fromEntries(options);
}

/** Those of `serve`, and so of `doctor`. */
export const serveVariables = describeVariables((name) => variablesOf("serve").includes(name));
