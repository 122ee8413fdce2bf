import { readFileSync } from "node:fs";
import type { ConfigurationProblem } from "../errors.ts";
import { findUnknownVariables } from "./unknown-variables.ts";
import { InvalidValue, quote } from "./values.ts";
import {
  describeVariable,
  type VariableName,
  type VariablesWithDefault,
  type VariableValue,
  variableNames,
} from "./variables.ts";

/** The variables of a process, or whatever stands in for them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads variables one after the other, and remembers what is wrong with them instead of stopping at the first. */
export type VariableReader = {
  /** Whether a variable, or the file in its place, is set to anything but spaces. */
  isSet(name: VariableName): boolean;
  /** The default when it is not set or cannot be read, which is then a problem; undefined where there is none. */
  read<N extends VariableName>(
    name: N,
  ): VariableValue<N> | (N extends VariablesWithDefault ? never : undefined);
  /** Notes a problem with a variable. */
  refuse(name: VariableName, problem: string): void;
  /** What was wrong so far, in the order of the table. */
  problems(): readonly ConfigurationProblem[];
};

export function createVariableReader(env: Environment): VariableReader {
  const problems: { name: VariableName; problem: ConfigurationProblem }[] = [];

  function read(name: VariableName): unknown {
    const { read: parse, default: usual } = describeVariable(name);
    const given = readVariable(env, name, parse);
    if (given !== undefined && "problem" in given) problems.push({ name, problem: given.problem });
    if (given !== undefined && "value" in given) return given.value;
    return usual === undefined ? undefined : parse(usual);
  }

  return {
    isSet: (name) => isGiven(env, name) || isGiven(env, fileVariable(name)),
    read: read as VariableReader["read"],
    refuse(name, problem) {
      problems.push({ name, problem: { name, problem, example: describeVariable(name).example } });
    },
    problems: () =>
      variableNames.flatMap((name) =>
        problems.filter((one) => one.name === name).map(({ problem }) => problem),
      ),
  };
}

/** The same, for commands that read all of a configuration: names that are none of a variable are problems too. */
export function createConfigurationReader(env: Environment): VariableReader {
  const reader = createVariableReader(env);
  return { ...reader, problems: () => [...reader.problems(), ...findUnknownVariables(env)] };
}

/**
 * The value of a variable: of its own text, or for a secret, of the file that `NAME_FILE` names. Undefined when
 * neither is set.
 */
export function readVariable<T>(
  env: Environment,
  name: VariableName,
  parse: (text: string) => T,
): { value: T } | { problem: ConfigurationProblem } | undefined {
  const file = fileVariable(name);
  const byFile = isGiven(env, file);
  if (!byFile && !isGiven(env, name)) return undefined;
  const from = byFile ? file : name;
  try {
    return { value: parse(byFile ? readSecretFile(env, name, file) : (env[name] ?? "").trim()) };
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const { example } = describeVariable(name);
    return { problem: { name: from, problem: error.message, ...(!byFile && { example }) } };
  }
}

/** The variable that names a file with a secret: only those have one. */
function fileVariable(name: VariableName): string | undefined {
  return describeVariable(name).secret === true ? `${name}_FILE` : undefined;
}

function isGiven(env: Environment, name: string | undefined): name is string {
  return name !== undefined && (env[name]?.trim() ?? "") !== "";
}

/** @throws InvalidValue that shows nothing of what the file holds */
function readSecretFile(env: Environment, name: VariableName, file: string): string {
  if (isGiven(env, name)) throw new InvalidValue(`is set, and so is ${name}; keep one of them`);
  const path = (env[file] ?? "").trim();
  // The secret itself, set here by mistake, does not begin as a path does.
  const shown = /^\.{0,2}\//.test(path) ? path : quote(path);
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new InvalidValue(`names the file ${shown}, which cannot be read: ${code}`);
  }
  if (text === "") throw new InvalidValue(`names the file ${shown}, which is empty`);
  return text;
}
