import { parseArgs } from "node:util";
import { InvalidValue } from "../../config/values.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../errors.ts";

/** Reads the text of an option; throws {@link InvalidValue} with what is wrong. */
type Read<T> = (text: string) => T;

/** One option of a command: a flag, or a value from the command line or else from the environment. */
export type Option<T = unknown> = {
  /** One line for `--help`. */
  describe: string;
  /** How a value is shown in the help: `--port PORT`. Undefined for a flag. */
  placeholder?: string;
  /** Whether the value is given without the option's name, in the order of such options: `fault base reset`. */
  positional?: boolean;
  /** The variable that gives the value when the command line does not. */
  env?: string;
  /** Whether the variable alone gives it: anybody on the machine can see command lines. */
  environmentOnly?: boolean;
  example?: string;
  read: Read<T>;
  /** Whether it may be given without a value; the text is then empty. */
  mayBeBare?: boolean;
  /** Whether it must be given. */
  required?: boolean;
  /** What it is when it is not given. */
  fallback?: T;
};

/** The options of a command, by their long names without dashes. */
export type Options = Readonly<Record<string, Option>>;

export type Values<O extends Options> = { [K in keyof O]: O[K] extends { read: Read<infer T> } ? T : never };

/** Judges the values that could be read, together. A problem may be named after an option's variable. */
export type CheckOptions<O extends Options> = (values: Partial<Values<O>>) => readonly ConfigurationProblem[];

/**
 * Reads a command line and the environment against the options of a command. Everything that is wrong is reported
 * at once.
 *
 * @throws ConfigurationError with one problem for each wrong option, value or variable.
 */
export function readOptions<O extends Options>(
  options: O,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  check: CheckOptions<O> = () => [],
): Values<O> {
  const { given, problems } = readArguments(options, args);
  const spell = (name: string) => {
    const written = formatOption(name, options[name]);
    return given.has(name) ? written : (options[name]?.env ?? written);
  };

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const fromEnv = option.env === undefined ? undefined : env[option.env];
    const text = given.get(name) ?? (fromEnv === "" ? undefined : fromEnv);
    if (text === undefined) {
      if (option.required !== true) values[name] = option.fallback;
      else if (option.environmentOnly === true && option.env !== undefined) {
        problems.push({ name: option.env, problem: "is needed", ...exampleOf(option) });
      } else if (!problems.some((problem) => problem.name === `--${name}`)) {
        const prefix = option.positional === true ? "" : `--${name} `;
        problems.push({
          name: formatOption(name, option),
          problem: "is needed",
          ...exampleOf(option, prefix),
        });
      }
      continue;
    }
    try {
      values[name] = option.read(text);
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      problems.push({ name: spell(name), problem: error.message, ...exampleOf(option) });
    }
  }

  for (const problem of check(values as Partial<Values<O>>)) {
    const name = Object.keys(options).find((key) => options[key]?.env === problem.name);
    problems.push(name === undefined ? problem : { ...problem, name: spell(name) });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return values as Values<O>;
}

/** How users write an option. */
export function formatOption(name: string, option: Option | undefined): string {
  return option?.positional === true ? (option.placeholder ?? name) : `--${name}`;
}

/** What the command line gives, and what on it is no option or a wrong one. */
function readArguments(
  options: Options,
  args: readonly string[],
): { given: ReadonlyMap<string, string>; problems: ConfigurationProblem[] } {
  // A map, since an object would also know options like --constructor.
  const known = new Map(Object.entries(options));
  const isFlag = (option: Option) => option.placeholder === undefined;
  const { tokens } = parseArgs({
    // An option that another one follows has no value; without this the other one would be taken for it.
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
  const unnamed = [...known].flatMap(([name, option]) => (option.positional === true ? [name] : []));
  let previousIsUnknown = false;
  for (const token of tokens) {
    // What follows an option that does not exist was meant as its value.
    const isItsValue = previousIsUnknown && token.kind === "positional";
    previousIsUnknown = token.kind === "option" && !known.has(token.name);
    if (isItsValue || token.kind === "option-terminator") continue;
    if (token.kind === "positional") {
      const meant = unnamed.shift();
      if (meant !== undefined) {
        given.set(meant, token.value);
        continue;
      }
      const hint = suggest(token.value, options);
      problems.push({ name: token.value, problem: `is not an option: options begin with --${hint}` });
      continue;
    }
    const { name, rawName, value } = token;
    const option = known.get(name);
    if (option === undefined) {
      problems.push({ name: rawName, problem: `there is no such option${suggest(name, options)}` });
    } else if (option.environmentOnly === true) {
      problems.push({ name: rawName, problem: `is read from the variable ${option.env} alone` });
    } else if (isFlag(option)) {
      if (value === undefined) given.set(name, "true");
      else problems.push({ name: rawName, problem: "takes no value" });
    } else if ((value === undefined || value === "") && option.mayBeBare !== true) {
      problems.push({ name: rawName, problem: "needs a value", ...exampleOf(option, `${rawName} `) });
    } else {
      given.set(name, value ?? "");
    }
  }
  return { given, problems };
}

function exampleOf({ example }: Option, prefix = ""): { example?: string } {
  return example === undefined ? {} : { example: `${prefix}${example}` };
}

/** Names the option that was probably meant, if there is one. */
function suggest(name: string, options: Options): string {
  const [nearest] = Object.keys(options)
    .map((known) => ({ known, distance: isBeginning(name, known) ? 0 : typosBetween(name, known) }))
    .sort((a, b) => a.distance - b.distance);
  return nearest === undefined || nearest.distance > 2 ? "" : `; did you mean --${nearest.known}?`;
}

function isBeginning(name: string, known: string): boolean {
  return (name.length > 2 && known.startsWith(name)) || name.startsWith(known);
}

/** How many letters must be added, dropped or changed to make one word of the other (Levenshtein). */
function typosBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
