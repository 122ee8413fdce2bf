import type { Check, Options, Values } from "./options.ts";

/** Where a command writes, and what it may know of the process around it. */
export type Terminal = {
  /** A line on stdout. */
  print(text: string): void;
  /** A line on stderr. */
  complain(text: string): void;
  env: Readonly<Record<string, string | undefined>>;
  /** Aborts at Ctrl-C or SIGTERM. */
  interrupted: AbortSignal;
};

/** One command of `x402-kit`. */
export type Command<O extends Options = Options> = {
  options: O;
  /** What can only be judged of several values together. */
  check?: Check<O>;
  /** Gives the exit code. Throws the reason of `terminal.interrupted` when it is cut short by it. */
  run(values: Values<O>, terminal: Terminal): Promise<number>;
};

/** Names a command together with its options, so that `run` knows the types of their values. */
export function defineCommand<O extends Options>(command: Command<O>): Command<O> {
  return command;
}
