import { parseArgs } from "node:util";
import { ConfigurationError, type Problem } from "../errors/configuration.ts";

/** Reads the text of an option; throws {@link InvalidValue} with what is wrong. */
type Read<T> = (text: string) => T;

/** One option of a command: a flag, or a value from the command line or else from the environment. */
export type Option<T = unknown> = {
  /** One line for `--help`. */
  describe: string;
  /** How a value is shown in the help: `--port PORT`. Undefined for a flag. */
  placeholder?: string;
  /** The variable that gives the value when the command line does not. */
  env?: string;
  example?: string;
  read: Read<T>;
  /** Whether it must be given. */
  required?: boolean;
  /** What it is when it is not given. */
  fallback?: T;
};

/** The options of a command, by their long names without dashes. */
export type Options = Readonly<Record<string, Option>>;

export type Values<O extends Options> = { [K in keyof O]: O[K] extends { read: Read<infer T> } ? T : never };

/** What an option's `read` throws when the text is not what it should be. */
export class InvalidValue extends Error {
  override readonly name = "InvalidValue";
}

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
): Values<O> {
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { placeholder }]) => [
        name,
        { type: placeholder === undefined ? ("boolean" as const) : ("string" as const) },
      ]),
    ),
  });

  const problems: Problem[] = [];
  const given = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "positional") {
      problems.push({ name: token.value, problem: "this is not an option" });
    } else if (token.kind === "option") {
      const option = options[token.name];
      if (option === undefined) {
        problems.push({
          name: token.rawName,
          problem: `there is no such option${didYouMean(token.name, options)}`,
        });
      } else if (option.placeholder === undefined) {
        if (token.value === undefined) given.set(token.name, "true");
        else problems.push({ name: token.rawName, problem: "takes no value" });
      } else if (token.value === undefined || token.value === "") {
        problems.push({
          name: token.rawName,
          problem: "needs a value",
          ...exampleOf(option, `${token.rawName} `),
        });
      } else {
        given.set(token.name, token.value);
      }
    }
  }

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const fromEnv = option.env === undefined ? undefined : env[option.env];
    const text = given.get(name) ?? (fromEnv === "" ? undefined : fromEnv);
    if (text === undefined) {
      if (option.required !== true) values[name] = option.fallback;
      else if (!problems.some((problem) => problem.name === `--${name}`)) {
        problems.push({ name: `--${name}`, problem: "is needed", ...exampleOf(option, `--${name} `) });
      }
      continue;
    }
    try {
      values[name] = option.read(text);
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      const spelled = given.has(name) ? `--${name}` : (option.env ?? name);
      problems.push({ name: spelled, problem: error.message, ...exampleOf(option) });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return values as Values<O>;
}

function exampleOf({ example }: Option, prefix = ""): { example?: string } {
  return example === undefined ? {} : { example: `${prefix}${example}` };
}

function didYouMean(name: string, options: Options): string {
  const near = Object.keys(options).find(
    (known) => known.startsWith(name.slice(0, 3)) || name.startsWith(known.slice(0, 3)),
  );
  return near === undefined
    ? `; known: ${Object.keys(options)
        .map((known) => `--${known}`)
        .join(", ")}`
    : `; did you mean --${near}?`;
}
