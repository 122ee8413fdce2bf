import { type VariableName, variables } from "../../config/variables.ts";
import type { Option } from "../kit/options.ts";

/**
 * Variables of the environment as options that the command line cannot give: `--help` describes them, and whoever
 * tries `--port` is told where it comes from. Their values are read, and judged together, by src/config.
 */
export function describeVariables(
  belongs: (name: VariableName) => boolean,
): Readonly<Record<string, Option<string | undefined>>> {
  const options = variables
    .filter(({ name }) => belongs(name))
    .map(({ name, summary, otherwise, example }): [string, Option<string | undefined>] => [
      name.toLowerCase().replaceAll("_", "-"),
      {
        describe: `${summary} (when not set: ${otherwise})`,
        placeholder: "VALUE",
        env: name,
        environmentOnly: true,
        example,
        read: (text) => text,
      },
    ]);
  return Object.fromEntries(options);
}

/** Those of `serve`, and so of `doctor`. */
export const serveVariables = describeVariables((name) => name !== "DEPLOYER_PRIVATE_KEY");
