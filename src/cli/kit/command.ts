import type { ConfigurationProblem } from "../../errors.ts";
import type { CheckOptions, Options, Values } from "./options.ts";

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

/** One command of `x402-kit`. */
export type Command<O extends Options = Options> = {
  options: O;
  /** Whether the file `.env` of the working directory counts as environment. */
  usesEnvFile?: boolean;
  /** It shows the warnings of its {@link CommandTerminal} itself; otherwise they are printed on stderr. */
  showsWarnings?: boolean;
  /** What can only be judged of several values together. */
  check?: CheckOptions<O>;
  /** Gives the exit code. May throw the {@link Interruption} that cut it short. */
  run(values: Values<O>, terminal: CommandTerminal): Promise<number>;
};

/** Names a command together with its options, so that `run` knows the types of their values. */
export function defineCommand<O extends Options>(command: Command<O>): Command<O> {
  return command;
}
