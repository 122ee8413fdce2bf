import type { Environment } from "../../config/variable-reader.ts";
import type { VariableName } from "../../config/variables.ts";
import type { ConfigurationProblem } from "../../errors.ts";

/** Where a command writes, and what it may know of the process around it. */
export type Terminal = {
  /** A line on stdout. */
  print(text: string): void;
  /** A line on stderr. */
  printError(text: string): void;
  /** The variables; a file `.env` adds to them. */
  env: Record<string, string | undefined>;
  /**
   * Takes over what Ctrl-C and SIGTERM do: without it they end the process at once. The signal aborts with an
   * {@link Interruption}.
   */
  takeSignals(): AbortSignal;
};

/** What a command runs in. */
export type CommandTerminal = Terminal & {
  /** What is to be mended about the file `.env`, though it works. */
  warnings: readonly ConfigurationProblem[];
};

/** The command was cut short, as its user wished. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

/** One option of a command: a flag, or a value. What is not given is false, or the default, or undefined. */
export type Option<T = unknown> = {
  /** What it is, for `--help`; the default and what else is below are added there. */
  describe: string;
  /** How a value is shown in the help: `--port PORT`. Undefined for a flag. */
  placeholder?: string;
  /** Whether the value is given without the option's name, in the order of such options: `fault base reset`. */
  positional?: boolean;
  /** The variable that gives the value when the command line does not. */
  variable?: VariableName;
  example?: string;
  /** Throws InvalidValue with what is wrong. */
  read: (text: string) => T;
  /** Whether it may be given without a value; the text is then empty. */
  mayBeBare?: boolean;
  /** Whether it must be given. */
  required?: boolean;
  /** What it is when it is not given, written as it would be given. */
  default?: string;
};

/** The options of a command, by their long names without dashes. */
export type Options = Readonly<Record<string, Option>>;

/** What the command line and the environment give for the options. */
export type Values<O extends Options> = { [K in keyof O]: ValueOf<O[K]> };

type ValueOf<O extends Option> = O extends { placeholder: string }
  ? ReturnType<O["read"]> | (O extends { required: true } | { default: string } ? never : undefined)
  : boolean;

/** One command of `x402-kit`. */
export type Command<O extends Options = Options, E = unknown> = {
  options: O;
  /** The variables that it reads besides those of its options: anybody on the machine can see command lines. */
  variables?: readonly VariableName[];
  /** Whether the file `.env` of the working directory counts as environment. */
  usesEnvFile?: boolean;
  /** It shows the warnings of its {@link CommandTerminal} itself; otherwise they are printed on stderr. */
  showsWarnings?: boolean;
  /** Reads the environment; throws ConfigurationError with everything that is wrong. */
  environment?: (env: Environment, values: Partial<Values<O>>) => E;
  /** What can only be judged of several values together. A problem may be named after an option's variable. */
  check?: (values: Partial<Values<O>>) => readonly ConfigurationProblem[];
  /** Gives the exit code. May throw the {@link Interruption} that cut it short. */
  run(values: Values<O>, terminal: CommandTerminal, environment: E): Promise<number>;
};

/** Names a command together with its options, so that `run` knows the types of their values. */
export function defineCommand<const O extends Options, E = undefined>(command: Command<O, E>): Command<O, E> {
  return command;
}

const { npm_lifecycle_event: npmEvent = "", npm_lifecycle_script: npmScript = "" } = process.env;

/** Whether npm runs this command as a script of the checkout: `npm start`, or `npm run x402-kit`. */
const isScriptOfCheckout = ["start", "x402-kit"].includes(npmEvent);

/**
 * Whether npm runs this command and nothing else: by `npx`, by a script of the checkout, or by one of the user's own,
 * `"serve": "x402-kit serve"`. Not by a script that leaves it running in the background.
 */
export const isRunByNpm =
  isScriptOfCheckout || npmEvent === "npx" || (/\bx402-kit\b/.test(npmScript) && !npmScript.includes("&"));

/**
 * How this command is called again from where it was called. In a checkout `npx x402-kit` would first install the
 * checkout somewhere, for half a minute.
 */
export const self = isScriptOfCheckout ? "npm run -s x402-kit --" : "npx x402-kit";
