import { parseArgs } from "node:util";
import type { KnownNetworks } from "../../config/known-networks.ts";
import { attempt } from "../../config/values.ts";
import { type Environment, readKnownNetworks, readVariable } from "../../config/variable-reader.ts";
import { describeVariable, type VariableName } from "../../config/variables.ts";
import { ConfigurationError, type ConfigurationProblem, collectProblems } from "../../util/errors.ts";
import { mostTyposOf, renderRows, terminalWidth, typosBetween, wrapText } from "../../util/text.ts";
import { type Command, formatOption, type Option, type Options, type Values } from "./command.ts";

/**
 * Parses a command line and the environment for a command. Reports everything that is wrong at once.
 *
 * @throws ConfigurationError with one problem for each wrong option, value or variable.
 */
export function readCommandLine<O extends Options, E>(
  command: Pick<Command<O, E>, "options" | "variables" | "environment" | "check">,
  args: readonly string[],
  ofProcess: Environment,
) {
  const { options, check = () => [] } = command;
  const { given, problems } = readArguments(command, args);
  const networkFile = given.get("network-file");
  const env = { ...ofProcess, ...(networkFile !== undefined && { NETWORKS_FILE: networkFile }) };
  const { networks, problem: fileProblem } = readKnownNetworks(env);
  if (fileProblem !== undefined) {
    const name = networkFile === undefined ? "NETWORKS_FILE" : "--network-file";
    problems.push({ ...fileProblem, name });
    // The command's own reader must not report it again.
    delete env.NETWORKS_FILE;
  }
  const nameOf = (name: string) => {
    const written = formatOption(name, options[name]);
    return given.has(name) ? written : (options[name]?.variable ?? written);
  };

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const text = given.get(name);
    const read =
      text === undefined
        ? readElsewhere(name, option, env, networks)
        : readGiven(name, option, text, networks);
    if ("value" in read) values[name] = read.value;
    else if (name === "network" && "network-file" in options && env.NETWORKS_FILE === undefined) {
      const { problem } = read.problem;
      const hint = isAboutUnknown(problem, networks) ? "; others are known with --network-file FILE" : "";
      problems.push({ ...read.problem, problem: `${problem}${hint}` });
    }
    // A missing value was reported already.
    else if (!problems.some((problem) => problem.name === `--${name}`)) problems.push(read.problem);
  }

  for (const problem of check(values as Partial<Values<O>>)) {
    const name = Object.keys(options).find((key) => options[key]?.variable === problem.name);
    problems.push(name === undefined ? problem : { ...problem, name: nameOf(name) });
  }
  const environment = collectProblems(problems, () =>
    command.environment?.(env, values as Partial<Values<O>>),
  );
  if (fileProblem !== undefined) {
    // The networks in the file are unknown, so options that name them may be right.
    throw new ConfigurationError(problems.filter(({ problem }) => !isAboutUnknown(problem, networks)));
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  // In the returned environment, NETWORKS_FILE is the file from the command line.
  return { values: values as Values<O>, environment: environment as E, networks, env };
}

/** Returns true if the problem is a network that is not known. */
function isAboutUnknown(problem: string, { names }: KnownNetworks): boolean {
  return problem.includes(` is not one of ${names.join(", ")}`);
}

type Read = { value: unknown } | { problem: ConfigurationProblem };

function readGiven(name: string, option: Option, text: string, networks: KnownNetworks): Read {
  const read = attempt(() => option.read(text, networks));
  if ("value" in read) return read;
  return { problem: { name: formatOption(name, option), problem: read.problem, ...exampleOf(option) } };
}

/** Reads an option that is not on the command line, from its variable or default. */
function readElsewhere(name: string, option: Option, env: Environment, networks: KnownNetworks): Read {
  const fromVariable =
    option.variable && readVariable(env, option.variable, (text) => option.read(text, networks));
  if (fromVariable !== undefined) return fromVariable;
  if (option.required === true) {
    const prefix = option.isRest === true ? "-- " : option.positional === true ? "" : `--${name} `;
    const example = exampleOf(option, prefix);
    return { problem: { name: formatOption(name, option), problem: "is needed", ...example } };
  }
  if (option.default !== undefined) return { value: option.read(option.default, networks) };
  return { value: isFlag(option) ? false : undefined };
}

const isFlag = (option: Option) => option.placeholder === undefined;

/** Splits the command line into values by option name; reports unknown and malformed options. */
function readArguments(
  { options, variables = [] }: Pick<Command, "options" | "variables">,
  allArgs: readonly string[],
): { given: ReadonlyMap<string, string>; problems: ConfigurationProblem[] } {
  // A map, since an object would also know options like --constructor.
  const known = new Map(Object.entries(options).filter(([, option]) => option.isRest !== true));
  const [restName] = Object.entries(options).find(([, option]) => option.isRest === true) ?? [];
  const restAt = restName === undefined ? -1 : allArgs.indexOf("--");
  const args = restAt === -1 ? allArgs : allArgs.slice(0, restAt);
  const { tokens } = parseArgs({
    // An option followed by another option has no value; otherwise the other one would be taken as its value.
    args: args.map((arg, index) => {
      const option = arg.startsWith("--") ? known.get(arg.slice(2)) : undefined;
      const hasValue = args[index + 1]?.startsWith("--") === false;
      return option === undefined || isFlag(option) || hasValue ? arg : `${arg}=`;
    }),
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      [...known].map(([name, option]) => [name, { type: isFlag(option) ? "boolean" : "string" }]),
    ),
  });

  const problems: ConfigurationProblem[] = [];
  const given = new Map<string, string>();
  const rest = restAt === -1 ? [] : allArgs.slice(restAt + 1);
  if (restName !== undefined && rest.length > 0) given.set(restName, rest.join("\0"));
  const unnamed = [...known].flatMap(([name, option]) => (option.positional === true ? [name] : []));
  let previousIsUnknown = false;
  for (const token of tokens) {
    // The text after an unknown option is its value.
    const isItsValue = previousIsUnknown && token.kind === "positional";
    previousIsUnknown = token.kind === "option" && !known.has(token.name);
    if (isItsValue || token.kind === "option-terminator") continue;
    if (token.kind === "positional") {
      const meant = unnamed.shift();
      if (meant !== undefined) {
        const before = given.get(meant);
        given.set(meant, before === undefined ? token.value : `${before}\0${token.value}`);
        if (known.get(meant)?.isList === true) unnamed.unshift(meant);
        continue;
      }
      const hint = suggest(token.value, options);
      problems.push({ name: token.value, problem: `is not an option: options begin with --${hint}` });
      continue;
    }
    const { name, rawName, value } = token;
    const option = known.get(name);
    if (option === undefined) {
      const variable = variables.find((one) => isNameOf(name, one.toLowerCase().replaceAll("_", "-")));
      const problem =
        variable === undefined
          ? `there is no such option${suggest(name, options)}`
          : `is read from the variable ${variable} alone`;
      problems.push({ name: rawName, problem });
    } else if (!isFlag(option) && given.has(name)) {
      problems.push({ name: rawName, problem: "is given twice" });
    } else if (isFlag(option)) {
      if (value === undefined) given.set(name, "");
      else problems.push({ name: rawName, problem: "takes no value" });
    } else if ((value === undefined || value === "") && option.mayBeBare !== true) {
      problems.push({ name: rawName, problem: "needs a value", ...exampleOf(option, `${rawName} `) });
    } else {
      given.set(name, value ?? "");
    }
  }
  return { given, problems };
}

function exampleOf({ default: usual, example = usual }: Option, prefix = ""): { example?: string } {
  return example === undefined ? {} : { example: `${prefix}${example}` };
}

/** A "did you mean" for the closest option name, if one is close. */
function suggest(name: string, options: Options): string {
  const [nearest] = Object.keys(options)
    .map((known) => ({ known, distance: isBeginning(name, known) ? 0 : typosBetween(name, known) }))
    .sort((a, b) => a.distance - b.distance);
  return nearest === undefined || nearest.distance > mostTyposOf(name)
    ? ""
    : `; did you mean --${nearest.known}?`;
}

/** Returns true if a name is that of a variable, or its first or last words: `--database` for DATABASE_URL. */
function isNameOf(name: string, variable: string): boolean {
  return name === variable || variable.startsWith(`${name}-`) || variable.endsWith(`-${name}`);
}

function isBeginning(name: string, known: string): boolean {
  return (name.length > 2 && known.startsWith(name)) || name.startsWith(known);
}

export function describeCommand(
  name: string,
  summary: string,
  { options, variables = [], exitCodes, usesEnvFile }: Command,
): string {
  const readsVariables = Object.values(options).some(({ variable }) => variable !== undefined);
  const isWithoutFile = usesEnvFile !== true && readsVariables;
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
    ...(isWithoutFile ? ["", "[env: …] is a variable of the environment; a file .env is not read."] : []),
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
