import { KitError } from "./base.ts";

/** One thing that is wrong with a configuration or a command line. */
export type Problem = {
  /** The variable or option, as the user spells it: `BASE_RPC_URL`, `--port`. */
  name: string;
  /** What is wrong with it. */
  problem: string;
  /** A value that would work. */
  example?: string;
};

/** A configuration that cannot work, with all of its problems at once. */
export class ConfigurationError extends KitError {
  override readonly name = "ConfigurationError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(
      problems
        .map(
          ({ name, problem, example }) => `${name}: ${problem}${example ? ` (for example ${example})` : ""}`,
        )
        .join("\n"),
    );
    this.problems = problems;
  }
}
