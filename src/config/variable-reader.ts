import type { ConfigurationProblem } from "../errors.ts";
import { InvalidValue } from "./values.ts";
import { type VariableName, variables } from "./variables.ts";

/** The variables of a process, or whatever stands in for them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads variables one after the other, and remembers what is wrong with them instead of stopping at the first. */
export type VariableReader = {
  /** Whether a variable is set to anything but spaces. */
  isSet(name: VariableName): boolean;
  /** Undefined when it is not set, and when it cannot be read, which is then a problem. */
  read<T>(name: VariableName, reader: (text: string) => T): T | undefined;
  /** Notes a problem with a variable. */
  refuse(name: VariableName, problem: string): void;
  /** What was wrong so far, in the order in which variables are described. */
  problems(): readonly ConfigurationProblem[];
};

export function createVariableReader(env: Environment): VariableReader {
  const problems: { name: VariableName; problem: string }[] = [];
  const textOf = (name: VariableName) => env[name]?.trim() || undefined;
  return {
    isSet: (name) => textOf(name) !== undefined,
    read(name, reader) {
      const text = textOf(name);
      if (text === undefined) return undefined;
      try {
        return reader(text);
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        problems.push({ name, problem: error.message });
        return undefined;
      }
    },
    refuse: (name, problem) => void problems.push({ name, problem }),
    problems: () =>
      variables.flatMap(({ name, example }) =>
        problems.filter((one) => one.name === name).map(({ problem }) => ({ name, problem, example })),
      ),
  };
}
