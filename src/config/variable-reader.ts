import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { networkNames } from "../protocol/networks.ts";
import { type ConfigurationProblem, KitError } from "../util/errors.ts";
import { nearest, typosBetween } from "../util/text.ts";
import { readNamedFile } from "./data-file.ts";
import { builtIn, type KnownNetworks } from "./known-networks.ts";
import { readNetworkFile } from "./network-file.ts";
import { attempt, InvalidValue } from "./values.ts";
import {
  type AnyVariableName,
  describeVariable,
  rpcVariableOf,
  type VariablesWithDefault,
  type VariableValue,
  variableNamesWith,
} from "./variables.ts";

/** The environment variables of a process, or a substitute for them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads variables one by one, and collects their problems instead of stopping at the first. */
export type VariableReader = {
  /** Returns true if a variable, or its file, is set to anything but spaces. */
  isSet(name: AnyVariableName): boolean;
  /** Returns a variable's value, or its default (if any) when it is unset or invalid. Adds a problem if it is invalid. */
  read<N extends AnyVariableName>(
    name: N,
  ): VariableValue<N> | (N extends VariablesWithDefault ? never : undefined);
  /** The built-in networks and those of NETWORKS_FILE, which resolve the names of networks. */
  networks: KnownNetworks;
  /** Adds a problem with a variable. */
  refuse(name: AnyVariableName, problem: string): void;
  /** Returns the problems so far, in the order of the table. */
  problems(): readonly ConfigurationProblem[];
};

export function createVariableReader(env: Environment): VariableReader {
  const problems: { name: AnyVariableName; problem: ConfigurationProblem }[] = [];

  function read(name: AnyVariableName): unknown {
    const { read: parse, default: usual } = describeVariable(name);
    const given = readVariable(env, name, (text) => parse(text, networks));
    if (given !== undefined && "problem" in given) problems.push({ name, problem: given.problem });
    if (given !== undefined && "value" in given) return given.value;
    return usual === undefined ? undefined : parse(usual);
  }

  const { networks, problem } = readKnownNetworks(env);
  if (problem !== undefined) problems.push({ name: "NETWORKS_FILE", problem });

  return {
    networks,
    isSet: (name) => isVariableSet(env, name),
    read: read as VariableReader["read"],
    refuse(name, problem) {
      const { example } = describeVariable(name);
      problems.push({ name, problem: { name, problem, example, isMissing: !isVariableSet(env, name) } });
    },
    problems: () =>
      variableNamesWith(networks).flatMap((name) =>
        problems.filter((one) => one.name === name).map(({ problem }) => problem),
      ),
  };
}

/** Returns the built-in networks and those of NETWORKS_FILE, with the problem of that file, if any. */
export function readKnownNetworks(env: Environment): {
  networks: KnownNetworks;
  problem?: ConfigurationProblem;
} {
  const file = readVariable(env, "NETWORKS_FILE", readNetworkFile);
  if (file === undefined) return { networks: builtIn };
  return "value" in file ? { networks: file.value } : { networks: builtIn, problem: file.problem };
}

/** The same, for commands that read a whole configuration: unknown variable names are problems, too. */
export function createConfigurationReader(env: Environment): VariableReader {
  const reader = createVariableReader(env);
  return {
    ...reader,
    problems: () => [...reader.problems(), ...findUnknownVariables(env, variableNamesWith(reader.networks))],
  };
}

/** Reads a variable from its own text or, for a secret, from the file in `NAME_FILE`; undefined if neither is set. */
export function readVariable<T>(
  env: Environment,
  name: AnyVariableName,
  parse: (text: string) => T,
): { value: T } | { problem: ConfigurationProblem } | undefined {
  const file = fileVariable(name);
  const byFile = isGiven(env, file);
  if (!byFile && !isGiven(env, name)) return undefined;
  const found = attempt(() => parse(byFile ? readSecretFile(env, name, file) : (env[name] ?? "").trim()));
  if ("value" in found) return found;
  const { example } = describeVariable(name);
  return { problem: { name: byFile ? file : name, problem: found.problem, ...(!byFile && { example }) } };
}

/** Returns true if a variable, or its file, is set to anything but spaces. */
export function isVariableSet(env: Environment, name: AnyVariableName): boolean {
  return isGiven(env, name) || isGiven(env, fileVariable(name));
}

/** Returns the variable for a file with the value; only secrets have one. */
function fileVariable(name: AnyVariableName): string | undefined {
  return describeVariable(name).secret === true ? `${name}_FILE` : undefined;
}

function isGiven(env: Environment, name: string | undefined): name is string {
  return name !== undefined && (env[name]?.trim() ?? "") !== "";
}

/** @throws InvalidValue that shows nothing of the file's content */
function readSecretFile(env: Environment, name: AnyVariableName, file: string): string {
  if (isGiven(env, name)) throw new InvalidValue(`is set, and so is ${name}; keep one of them`);
  const { text, named } = readNamedFile((env[file] ?? "").trim());
  if (text.trim() === "") throw new InvalidValue(`${named}, which is empty`);
  return text.trim();
}

/** Name prefixes that only this program's variables have. */
const ownPrefixes = [
  "X402_KIT_",
  "FACILITATOR_CONTRACT",
  "OPERATOR_",
  "RECOVERER_",
  "DEPLOYER_",
  "RATE_LIMIT_",
  "METRICS_",
  "SETTLE_WAIT",
  ...networkNames.map((name) => rpcVariableOf(name).replace(/_URL$/, "")),
];

/** Kubernetes sets such variables for every service in a namespace, after its name: `OPERATOR_PORT_80_TCP_ADDR`. */
const ofKubernetes =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

/** Too many names are a letter away from a short one: `HOST` is no typo for `HOSTS`. */
const shortestTypo = 8;
const mostTypos = 2;

/** Finds unknown variables that are probably misspelled; otherwise the defaults would silently apply. */
export function findUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly AnyVariableName[],
): ConfigurationProblem[] {
  const known = new Set(
    names.flatMap((name) => [name, ...(describeVariable(name).secret ? [`${name}_FILE`] : [])]),
  );
  return Object.entries(env).flatMap(([name, text]) => {
    if (known.has(name) || (text?.trim() ?? "") === "" || ofKubernetes.test(name)) return [];
    const upper = name.toUpperCase().replaceAll("-", "_");
    const [meant = ""] = nearest(upper, [...known], 1);
    const isOurs = ownPrefixes.some((prefix) => upper.startsWith(prefix));
    const isTypo = meant.length >= shortestTypo && typosBetween(upper, meant) <= mostTypos;
    return isOurs || isTypo ? [{ name, problem: `no such variable; did you mean ${meant}?` }] : [];
  });
}

/** Freezes a plain object and everything in it. */
export function freezeDeep<T extends object>(value: T): Readonly<T> {
  for (const part of Object.values(value)) {
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) freezeDeep(part);
  }
  return Object.freeze(value);
}

/** The mode bit that lets all other users read a file. */
const readableByOthers = 0o004;

/**
 * Loads the file `.env` in the working directory into an environment, if it exists, like `node --env-file`: variables
 * that are already set are kept. A byte order mark, which some editors write, is ignored.
 *
 * @returns warnings about the file; its variables are used anyway
 * @throws KitError when the file exists but cannot be read
 */
export function loadEnvFile(env: Record<string, string | undefined>, path = ".env"): ConfigurationProblem[] {
  let text: string;
  let mode: number;
  try {
    mode = statSync(path).mode;
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return [];
    throw new KitError("The file .env cannot be read", { cause });
  }
  const bare = text.replace(/^\uFEFF/, "");
  for (const [name, value] of Object.entries(parseEnv(bare))) env[name] ??= value;
  const warnings = warnOfLines(bare);
  // Windows has no such bits and reports arbitrary ones.
  if (process.platform !== "win32" && (mode & readableByOthers) !== 0) {
    warnings.push({
      name: ".env",
      problem: "can be read by every user of this machine; run: chmod 600 .env",
    });
  }
  return warnings;
}

/** A variable as `parseEnv` reads it: a quoted value may span several lines. */
const assignment = /^[ \t]*(?:export[ \t]+)?[\w.-]+[ \t]*=[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`)?.*$/gm;

const mostLines = 5;

/** Warns of lines without a variable by line number, because their text may be a secret. */
function warnOfLines(text: string): ConfigurationProblem[] {
  const rest = text.replace(assignment, (found) => found.replace(/[^\n]/g, "")).split("\n");
  const numbers = rest.flatMap((line, index) => (/^\s*(?:#|$)/.test(line) ? [] : [index + 1]));
  if (numbers.length === 0) return [];
  const which = numbers.length === 1 ? `line ${numbers} is` : `lines ${shorten(numbers)} are`;
  return [{ name: ".env", problem: `${which} no NAME=value, and passed over` }];
}

function shorten(numbers: readonly number[]): string {
  const shown = numbers.slice(0, mostLines).join(", ");
  return numbers.length > mostLines ? `${shown} and ${numbers.length - mostLines} more` : shown;
}
